// A registry of packages: `node registry.js PORT_FILE TARBALL...`, where a tarball is named NAME-VERSION.tgz and is
// beside its package.json.
const crypto = require("crypto");
const fs = require("fs");
const http = require("http");
const path = require("path");
const [portFile, ...tarballs] = process.argv.slice(2);
const server = http.createServer((request, response) => {
  const base = `http://${request.headers.host}`;
  const name = decodeURIComponent(request.url.slice(1));
  const tarball = tarballs.find((tarball) => path.basename(tarball) === name);
  if (tarball) return response.end(fs.readFileSync(tarball));
  const known = tarballs.find((tarball) => path.basename(tarball).startsWith(`${name}-`));
  if (!known) return response.writeHead(404).end("{}");
  const manifest = JSON.parse(fs.readFileSync(path.join(path.dirname(known), "package.json")));
  const integrity = `sha512-${crypto.createHash("sha512").update(fs.readFileSync(known)).digest("base64")}`;
  manifest.dist = { tarball: `${base}/${path.basename(known)}`, integrity };
  manifest.hasInstallScript = Boolean(manifest.scripts && manifest.scripts.postinstall);
  const versions = { [manifest.version]: manifest };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ name, "dist-tags": { latest: manifest.version }, versions }));
});
server.listen(0, "127.0.0.1", () => fs.writeFileSync(portFile, String(server.address().port)));
