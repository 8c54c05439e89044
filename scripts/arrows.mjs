/**
 * Checks which package imports which, and inside core which folder imports which. Type-only imports count.
 *
 * ARCHITECTURE.md names the folders of core, lowest first, and those of adapters; a folder that it does not name is an error. A
 * package with special rules gets a row in `rooms`. The files next to core's folders are its entries, which re-export and which
 * nothing imports.
 */
import { globSync, readFileSync } from "node:fs"
import { posix as path } from "node:path"

/** The folders that a section of ARCHITECTURE.md names, in its order. */
const foldersOf = (title) => {
  const text = readFileSync(new URL("../ARCHITECTURE.md", import.meta.url), "utf8")
  const [, section = ""] = text.split(`## ${title}\n`)
  return [...section.split("\n## ")[0].matchAll(/`([\w-]+)\/`/g)].map((match) => match[1])
}

/** Lowest first: a module imports modules of its own folder and of earlier ones. */
const levels = foldersOf("Core, folder by folder").filter((name) => name !== "internal")
/** The folders that an adapter may have in `src/internal/`. */
const adapterRooms = foldersOf("Adapters, room by room")

/** The first row that matches decides. `may`: imports from outside the package; `driver`: the file without limits. */
const rooms = [
  // Node's own modules: the adapter of a URL is loaded, and async contexts are entered.
  {
    files: /^packages\/core\/src\/(faces\/internal\/resolve|runtime\/AsyncContext)\.ts$/,
    may: /^(effect\/|node:)/
  },
  { files: /^packages\/core\/src\//, may: /^effect\// },
  { files: /^packages\/kit\/src\//, may: /^(effect\/|@requeue\/core\/port$)/ },
  { files: /^packages\/operations\/src\//, may: /^(effect\/|@requeue\/core(\/|$))/ },
  // Cloudflare's v8 bodies are read, and bodies are compressed.
  { files: /^packages\/(cloudflare|codecs)\/src\//, may: /^(effect\/|node:(util|v8|zlib)$|@requeue\/core(\/|$))/ },
  // Files are read in one place, and parsed in another.
  { files: /^packages\/config\/src\/internal\/source\.ts$/, may: /^(effect\/|@requeue\/core\/|node:)/ },
  { files: /^packages\/config\/src\/internal\/yaml\.ts$/, may: /^yaml$/ },
  { files: /^packages\/config\/src\//, may: /^(effect\/|@requeue\/core(\/|$))/ },
  {
    files: /^packages\/cli\/src\//,
    may: /^(effect\/|@requeue\/(core(\/|$)|config$|console$|operations$)|node:)/
  },
  { files: /^packages\/console\/src\//, may: /^(effect\/|node:|@requeue\/(core(\/port)?|config|operations)$)/ },
  // Cases see in which async context a function runs.
  {
    files: /^packages\/conformance\/src\/internal\/asyncContext\.ts$/,
    may: /^(effect\/|node:async_hooks$)/
  },
  { files: /^packages\/conformance\/src\//, may: /^(effect|@requeue\/(core|operations))(\/|$)/ },
  // A checker that shared code with the core would share its defects.
  { files: /^packages\/simulation\/src\/check\//, may: /^$/ },
  // Kinds of worlds in which the adapter itself runs.
  {
    files: /^packages\/simulation\/src\/sqs\//,
    may: /^(effect\/|@requeue\/core(\/|$)|@requeue\/adapter-sqs(\/driver)?$)/
  },
  {
    files: /^packages\/simulation\/src\/nsq\//,
    may: /^(effect\/|@requeue\/core(\/|$)|@requeue\/adapter-nsq(\/driver)?$)/
  },
  {
    files: /^packages\/simulation\/src\/rabbitmq\//,
    may: /^(effect\/|@requeue\/core(\/|$)|@requeue\/adapter-rabbitmq(\/driver)?$)/
  },
  // Its file is real.
  {
    files: /^packages\/simulation\/src\/sqlite\//,
    may: /^(effect\/|node:|@requeue\/core(\/|$)|@requeue\/adapter-sqlite(\/driver)?$)/
  },
  {
    files: /^packages\/simulation\/src\//,
    may: /^(effect\/|node:|@requeue\/(core|kit|operations)(\/|$)|@requeue\/adapter-(nsq|rabbitmq|sqs)\/driver$)/
  },
  // NSQ has two protocols, and Node.js itself speaks one of them.
  { files: /^packages\/adapter-nsq\/src\/internal\/httpClient\.ts$/, may: /^(node:|@requeue\/(core\/|kit$))/ },
  // Node reads and syncs the log of a SQLite file, and a thread of Node copies it.
  { files: /^packages\/adapter-sqlite\/src\/internal\/log\.ts$/, may: /^node:/ },
  // The SDK of SQS receives checksums from Node.
  { files: /^packages\/adapter-sqs\/src\/internal\/checksums\.ts$/, may: /^node:crypto$/ },
  {
    files: /^packages\/adapter-[^/]+\/src\//,
    may: /^(effect|@requeue\/(core|codecs|kit))(\/|$)/,
    // And the types of an untyped driver.
    driver: /\/src\/internal\/(client|driver|\w+\.d)\.ts$/
  },
  { files: /^packages\/opentelemetry\/src\//, may: /^(effect|@requeue\/core|@opentelemetry\/(api|core))(\/|$)/ },
  // Other tests run on the memory broker.
  { files: /^packages\/adapter-[^/]+\/test\//, may: /^(?!@requeue\/adapter-(?!memory$))/ },
  { files: /^packages\/(core|conformance)\/test\//, may: /^(?!@requeue\/(adapter-|cli))/ },
  { files: /^(packages|apps)\/[^/]+\/src\//, may: /^(?!@requeue\/conformance)/ }
]

const core = "packages/core/src/"
/** The folder of a module of core; an entry is above all of them. */
const levelOf = (file) => {
  const [folder, ...rest] = file.slice(core.length).split("/")
  return rest.length === 0 ? "the entries" : folder
}
const rankOf = (level) => (level === "the entries" ? levels.length : levels.indexOf(level))

/** The paths of core that others import. The rest of `exports` is for the compiler, which uses it to name types. */
const entries = /^@requeue\/core(\/(promise|port|schema|package\.json))?$/

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
    const [from, to] = [levelOf(file), levelOf(target)]
    return rankOf(from) < rankOf(to) ? `${from} may not import ${to}` : undefined
  }
  if (/^@requeue\/[^/]+\/(.+\/)?(internal|src)\//.test(specifier)) return "internal modules belong to their own package"
  if (specifier.startsWith("@requeue/core/") && !entries.test(specifier)) return "core is imported by its entries"
  if (room !== "src" && `${specifier}/`.startsWith(`${own}/`)) return undefined
  const row = rooms.find(({ files }) => files.test(file))
  if (row === undefined || row.may.test(specifier)) return undefined
  if (row.driver === undefined || specifier.startsWith("@requeue/")) return `${folder}/${name}/${room} may not`
  return row.driver.test(file) ? undefined : "only internal/client.ts and its driver.ts import the driver"
}

/** Returns the violations of one file, as lines to print. */
export const check = (file, source) => {
  const room = /^packages\/adapter-[^/]+\/src\/internal\/([^/]+)\//.exec(file)?.[1]
  const isNamed =
    room === undefined ? !file.startsWith(core) || rankOf(levelOf(file)) >= 0 : adapterRooms.includes(room)
  if (!isNamed) return [`${file}: give its folder a sentence in ARCHITECTURE.md`]
  return imports(source).flatMap((specifier) => {
    const reason = violation(file, specifier)
    return reason === undefined ? [] : [`${file} imports ${specifier}: ${reason}`]
  })
}

if (import.meta.main) {
  const files = globSync("{packages,apps}/*/{src,test}/**/*.{ts,mts,tsx}").map((file) => file.replaceAll("\\", "/"))
  const lines = files.toSorted().flatMap((file) => check(file, readFileSync(file, "utf8")))
  const known = [...levels.map((name) => `${core}${name}/`), ...adapterRooms.map((name) => `/src/internal/${name}/`)]
  for (const folder of known) {
    if (!files.some((file) => file.includes(folder))) lines.push(`ARCHITECTURE.md names ${folder}, which is empty`)
  }
  for (const line of lines) console.error(line)
  console.log(`arrows: ${files.length} files, ${lines.length} wrong imports`)
  process.exitCode = lines.length === 0 && files.length > 0 ? 0 : 1
}
