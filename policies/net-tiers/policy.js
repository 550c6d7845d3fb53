// Hosts in tiers: registries and forges are reached, paste sites and metadata services never, everything else is
// asked for. Single programs can be given more, or less.

import { allowHost, askHost, definePolicy, denyHost, profile } from "./portcullis/policy.js";
import { DENIED, FORGES, METADATA, REGISTRIES } from "./hosts.js";

let tiers;

export const { lifecycle, evaluator, confinement, outputFilter, orientation } = definePolicy({
  id: "portcullis:net-tiers",
  version: "0.1.0",
  title: "Hosts in tiers",
  rules: {
    "net.unknown": "hosts that no tier names are asked for",
    "net.registry": "registries of packages",
    "net.forge": "forges of source code",
    "net.program-allowed": "this program may reach it",
    "net.program-denied": "this program does not reach it",
    "net.denied": "places to leave data at are never reached",
    "net.metadata": "metadata services hand out credentials and are never reached",
  },
  configSchema: {
    type: "object",
    additionalProperties: false,
    properties: {
      registries: { $ref: "#/$defs/hosts", default: REGISTRIES },
      forges: { $ref: "#/$defs/hosts", default: FORGES },
      denied: { $ref: "#/$defs/hosts", default: DENIED },
      programs: {
        type: "object",
        default: {},
        additionalProperties: {
          type: "object",
          additionalProperties: false,
          properties: { allow: { $ref: "#/$defs/hosts" }, deny: { $ref: "#/$defs/hosts" } },
        },
      },
    },
    $defs: { hosts: { type: "array", items: { type: "string", minLength: 1 } } },
  },

  configure(config) {
    const faults = [];
    const list = (entries, pointer) => entries.map((entry, index) => host(entry, `${pointer}/${index}`, faults));
    tiers = {
      registries: list(config.registries ?? REGISTRIES, "/registries"),
      forges: list(config.forges ?? FORGES, "/forges"),
      denied: list(config.denied ?? DENIED, "/denied"),
      programs: Object.entries(config.programs ?? {}).map(([program, lists]) => {
        const pointer = `/programs/${program.replaceAll("~", "~0").replaceAll("/", "~1")}`;
        for (const key of Object.keys(lists)) {
          if (key !== "allow" && key !== "deny") faults.push({ pointer: `${pointer}/${key}`, message: "there is no such key" });
        }
        if (program === "" || program === "*") faults.push({ pointer, message: "write the name or the path of a program" });
        return {
          program,
          allow: list(lists.allow ?? [], `${pointer}/allow`),
          deny: list(lists.deny ?? [], `${pointer}/deny`),
        };
      }),
    };
    return faults;
  },

  // The last rule that matches answers: a denied host stays denied whatever a program is given.
  standing() {
    const rules = (make, id, reason, entries, more = {}) =>
      entries.map(({ name, ports, pointer }) => make(id, name, ports, { reason, setting: pointer, ...more }));
    return profile({
      network: [
        askHost("net.unknown", "*", [], { reason: "no tier names this host" }),
        ...rules(allowHost, "net.registry", "it is a registry of packages", tiers.registries),
        ...rules(allowHost, "net.forge", "it is a forge of source code", tiers.forges),
        ...tiers.programs.flatMap(({ program, allow, deny }) => [
          ...rules(allowHost, "net.program-allowed", `\`${program}\` may reach it`, allow, { program }),
          ...rules(denyHost, "net.program-denied", `\`${program}\` does not reach it`, deny, { program }),
        ]),
        ...rules(denyHost, "net.denied", "data could be left there for anybody", tiers.denied),
        ...METADATA.map((name) =>
          denyHost("net.metadata", name, [], { reason: "metadata services hand out credentials of the machine" }),
        ),
      ],
    });
  },

  brief() {
    const names = [...tiers.registries, ...tiers.forges].map(({ name }) => name).join(", ");
    return `Commands reach these hosts without a question: ${names}. Other hosts are asked for; paste sites, `
      + "collectors of requests and metadata services are never reached, so do not try.";
  },
});

const NAME = /^(\*|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9.]+(\/[0-9]{1,2})?|[0-9a-f:.]*:[0-9a-f:.]*(\/[0-9]{1,3})?)$/;

// `name`, `name:443`, `name:22,443`, an address or a block; addresses of IPv6 with ports in brackets.
function host(entry, pointer, faults) {
  const match = /^(?:\[([^\]]+)\]|([^:]+|[^:]*:[^:]*:.*?))(?::([0-9,]+))?$/.exec(String(entry).trim().toLowerCase());
  const name = match?.[1] ?? match?.[2] ?? "";
  const ports = match?.[3] == null ? [] : match[3].split(",").map(Number);
  if (!NAME.test(name) || ports.some((port) => !(port >= 1 && port <= 65535))) {
    faults.push({ pointer, message: `\`${entry}\` is no host; write for example \`example.com\`, \`*.example.com:443\` or \`10.0.0.0/8\`` });
  }
  return { name, ports, pointer };
}
