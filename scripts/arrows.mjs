/**
 * Checks which package imports which, and inside core which level imports which. Type-only imports count.
 *
 * A new module of core is named in `levels`; a package with rules of its own gets a row in `rooms`.
 */
import { globSync, readFileSync } from "node:fs"
import { posix as path } from "node:path"

/** Lowest first: a module imports modules of its own level and of the levels before it. `x/**` is a folder. */
const levels = {
  facts:
    "Message Delay Backoff Jitter Settlement Connection Capabilities Delivery Outgoing Metadata Failure OptionNames Bag Remembered Codec SchemaCodec " +
    "Handler BrokerError ConfigurationError EncodeError StrictSchema AdapterOptions Persistence",
  policies:
    "Classifier RetryPolicy BatchPolicy Acknowledgement ConsumerBackoff DeadLetterBudget DeadLetterRouting Feasibility Plan QueueDefinition",
  port: "Broker Adapter",
  composition:
    "Adapters Consumer ConsumerOptions Producer Puller DeadLetters Event Health Telemetry Timers Deadlines VirtualClock internal/**",
  faces: "Requeue promise Cloudflare PolicyConfig index"
}

/** The first row that matches decides. `may`: imports from outside the package; `driver`: the file that has no `may`. */
const rooms = [
  // What is Node's own: the adapter of a URL is loaded, and Cloudflare's v8 bodies are read.
  { files: /^packages\/core\/src\/(Cloudflare|internal\/resolve)\.ts$/, may: /^(effect\/|node:)/ },
  { files: /^packages\/core\/src\//, may: /^effect\// },
  // Files are read in one place.
  { files: /^packages\/config\/src\/internal\/source\.ts$/, may: /^(effect\/|@requeue\/core\/|node:|yaml$)/ },
  { files: /^packages\/config\/src\//, may: /^(effect|@requeue\/core)\// },
  {
    files: /^packages\/cli\/src\//,
    may: /^(effect\/|@effect\/platform-node-shared\/|@requeue\/(core\/|config$)|node:|tinyqueue$)/
  },
  { files: /^packages\/conformance\/src\//, may: /^(effect|@requeue\/core)(\/|$)/ },
  {
    files: /^packages\/adapter-[^/]+\/src\//,
    may: /^(effect|@requeue\/core)(\/|$)/,
    // And the types of a driver that has none.
    driver: /\/src\/internal\/(client|\w+\.d)\.ts$/
  },
  { files: /^packages\/opentelemetry\/src\//, may: /^(effect|@requeue\/core|@opentelemetry\/(api|core))(\/|$)/ },
  { files: /^packages\/adapter-[^/]+\/test\//, may: /^(?!@requeue\/adapter-)/ },
  { files: /^packages\/(core|conformance)\/test\//, may: /^(?!@requeue\/(adapter-|cli))/ },
  { files: /^(packages|apps)\/[^/]+\/src\//, may: /^(?!@requeue\/conformance)/ }
]

const names = Object.keys(levels)
const core = "packages/core/src/"
const moduleOf = (file) => file.slice(core.length).replace(/\.ts$/, "")
const levelOf = (module) => names.find((name) => levels[name].split(" ").some((m) => path.matchesGlob(module, m)))

/** The module specifiers of a source text: import, export from, import(), and import("x").Type; not in comments. */
export const imports = (source) => {
  const code = source.replace(
    /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\/\*[\s\S]*?\*\/|\/\/.*/g,
    (_, text) => text ?? ""
  )
  return [...code.matchAll(/\b(?:from|import)\b\s*\(?\s*["']([\w@./:-]+)["']/g)].map((match) => match[1])
}

const violation = (file, specifier) => {
  const [folder, name, room] = file.split("/")
  const own = `@requeue/${name}`
  if (specifier.startsWith(".")) {
    const target = path.join(path.dirname(file), specifier)
    if (!target.startsWith(`${folder}/${name}/`)) return "a relative import stays inside its package"
    if (!file.startsWith(core) || !target.startsWith(core)) return undefined
    const [from, to] = [levelOf(moduleOf(file)), levelOf(moduleOf(target))]
    return names.indexOf(from) < names.indexOf(to) ? `${from} may not import ${to}` : undefined
  }
  if (/^@requeue\/[^/]+\/(internal|src)\//.test(specifier)) return "internal modules belong to their own package"
  if (room !== "src" && `${specifier}/`.startsWith(`${own}/`)) return undefined
  const row = rooms.find(({ files }) => files.test(file))
  if (row === undefined || row.may.test(specifier)) return undefined
  if (row.driver === undefined || specifier.startsWith("@requeue/")) return `${folder}/${name}/${room} may not`
  return row.driver.test(file) ? undefined : "only internal/client.ts imports the driver"
}

/** What is wrong with one file, as lines to print. */
export const check = (file, source) => {
  if (file.startsWith(core) && !levelOf(moduleOf(file))) return [`${file} has no level: name it in scripts/arrows.mjs`]
  return imports(source).flatMap((specifier) => {
    const reason = violation(file, specifier)
    return reason === undefined ? [] : [`${file} imports ${specifier}: ${reason}`]
  })
}

if (import.meta.main) {
  const files = globSync("{packages,apps}/*/{src,test}/**/*.{ts,mts,tsx}").map((file) => file.replaceAll("\\", "/"))
  const lines = files.toSorted().flatMap((file) => check(file, readFileSync(file, "utf8")))
  for (const line of lines) console.error(line)
  console.log(`arrows: ${files.length} files, ${lines.length} wrong imports`)
  process.exitCode = lines.length === 0 && files.length > 0 ? 0 : 1
}
