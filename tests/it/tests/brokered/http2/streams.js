// A server that speaks HTTP/2, stores every request, and answers with what the path asks for: `node streams.js DIRECTORY
// ADDRESS PORT`, with HTTP/1.1 as well if a fourth argument says so. Requests for git go to the git server.
const [directory, address, port, both] = process.argv.slice(2);
const { createSecureServer } = require("node:http2");
const { request: ask } = require("node:https");
const { appendFileSync, readFileSync } = require("node:fs");
const { gzipSync } = require("node:zlib");
const { join } = require("node:path");
const secret = "s3cr3t-Credential-" + "0123456789";
const read = (name) => readFileSync(join(directory, name));
let withdrawn = false;
const message = (text) => Buffer.concat([Buffer.from([0, 0, 0, 0, Buffer.byteLength(text)]), Buffer.from(text)]);

function store(request, body) {
	const { httpVersion: version, rawHeaders: headers, rawTrailers: trailers } = request;
	const line = JSON.stringify({ version, headers, trailers, body: body.toString("latin1").slice(0, 300), length: body.length });
	appendFileSync(join(directory, "streams"), line.replaceAll(secret, "SECRET") + "\n");
}

// Answers a call of gRPC, which has a status in its trailers.
function call(request, response, given) {
	const { path } = request;
	response.writeHead(200, { "content-type": "application/grpc", ...(path.endsWith("/packed") ? { "grpc-encoding": "gzip" } : {}) });
	if (path.endsWith("/echoes")) {
		request.stream.on("data", (piece) => response.write(piece));
	} else {
		request.stream.resume();
		response.write(message(path.endsWith("/credential") ? given : "hello"));
	}
	request.stream.on("end", () => {
		response.addTrailers({ "grpc-status": "0", "grpc-message": path.endsWith("/credential") ? given : "REACHED" });
		response.end();
	});
}

function forward(request, response, body, port, headers) {
	const options = { host: address, port, method: request.method, path: request.url, headers, rejectUnauthorized: false };
	const asked = ask(options, (answer) => {
		const { connection, "transfer-encoding": coding, ...kept } = answer.headers;
		response.writeHead(answer.statusCode, kept);
		answer.pipe(response);
	});
	asked.end(body);
}

function toGit(request, response, body) {
	const names = ["authorization", "accept", "content-type", "content-encoding", "git-protocol", "x-key"];
	const headers = Object.fromEntries(names.filter((name) => name in request.headers).map((name) => [name, request.headers[name]]));
	forward(request, response, body, 9443, headers);
}

// Has the signature of a request checked, which covers its headers.
function toAws(request, response, body) {
	const own = Object.entries(request.headers).filter(([name]) => !name.startsWith(":"));
	forward(request, response, body, 9446, { ...Object.fromEntries(own), host: request.headers[":authority"] });
}

function answer(request, response, body) {
	const { authorization: given = "" } = request.headers;
	const path = request.url.split("?")[0];
	const say = (text, status = 200, headers = {}) => response.writeHead(status, headers).end(text);
	if (/^\/(git\/|reset$|references$)/.test(path)) return toGit(request, response, body);
	if (given.startsWith("AWS4-")) return toAws(request, response, body);
	if (path === "/hang") return;
	// Takes every second request.
	if (path === "/withdrawn" && (withdrawn = !withdrawn)) return request.stream.close(7);
	if (path === "/broken") return request.stream.close(2);
	if (path === "/leave") {
		request.stream.session.goaway(0);
		return say("REACHED\n");
	}
	if (path === "/big") {
		const piece = Buffer.alloc(65536, "big ");
		let left = 1024;
		const more = () => {
			while (left-- > 0) if (!response.write(piece)) return response.once("drain", more);
			response.end();
		};
		return more();
	}
	if (path === "/heads") return say("", 200, Object.fromEntries([...Array(100).keys()].map((name) => [`x-${name}-${Math.random()}`, `${Math.random()}`.repeat(7)])));
	if (path === "/echo") return say(`${given} REACHED\n`, 200, { "x-echo": given });
	if (path === "/pieces") {
		response.writeEarlyHints({ link: `<${given}>; rel=preload` });
		const [...pieces] = `${given} REACHED\n`;
		const more = () => (pieces.length ? (response.write(pieces.shift()), setTimeout(more, 3)) : response.end());
		return more();
	}
	if (path === "/gzip") return say(gzipSync(given), 200, { "content-encoding": "gzip" });
	if (path === "/cookie") return say(`${request.headers.cookie} REACHED\n`);
	if (path === "/wants" && given !== `Bearer ${secret}`) return say("who are you?\n", 401);
	return say("REACHED\n");
}

const options = { key: read("forge-key.pem"), cert: read("forge.pem"), allowHTTP1: both === "both", maxSessionMemory: 1000 };
const server = createSecureServer(options, (request, response) => {
	const { authorization: given = "" } = request.headers;
	if (`${request.headers["content-type"]}`.startsWith("application/grpc")) {
		store(request, Buffer.alloc(0));
		return call(Object.assign(request, { path: request.url }), response, given);
	}
	const pieces = [];
	request.on("data", (piece) => pieces.push(piece));
	request.on("error", () => {});
	request.on("aborted", () => store(request, Buffer.concat(pieces)));
	request.on("end", () => {
		store(request, Buffer.concat(pieces));
		answer(request, response, Buffer.concat(pieces));
	});
});
server.on("sessionError", () => {});
server.listen(Number(port), address, () => console.log("listens"));
