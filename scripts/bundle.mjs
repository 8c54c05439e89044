/**
 * Bundles the many modules of a built package into a few, because Node needs time for each one. An entry loads little more than
 * it needs, and lazy imports stay separate. Every public module keeps its path.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative, resolve } from "node:path"
import { rolldown } from "rolldown"

const folder = resolve("dist")

const nameOf = (file) => relative(folder, file).replaceAll("\\", "/").replace(/\.js$/, "")

/** The modules that users import: those that `exports` names, and lower-case ones at the top. */
const entriesOf = (files) => {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8"))
  const exported = Object.values(exports).map((one) => resolve(one?.default ?? ""))
  return files.filter((file) => exported.includes(file) || /^[a-z][^/]*$/.test(nameOf(file)))
}

/** The modules that a module loads at once, directly or through others. */
const loadedBy = (file, modules, found = new Set()) => {
  if (found.has(file)) return found
  found.add(file)
  for (const imported of modules.getModuleInfo(file)?.importedIds ?? []) loadedBy(imported, modules, found)
  return found
}

/**
 * The entry that a program imports: it starts sooner the smaller and fewer its modules are. So it loads two chunks, one of which
 * has what adapters load as well.
 */
const face = { entry: "promise", lean: "port" }

/**
 * Returns the chunk of a module: one of the two that the `face` loads; else a chunk with what else its only entry loads, or with
 * what the leanest of its entries shares with others, apart from what the package's index does not load. So a chunk never leads
 * back to one that imports it, which has a higher rank. A lazily imported module is an entry, too; what it shares with the index
 * alone is in the index's chunk, which is loaded by then.
 */
const chunks = (files, modules) => {
  const later = files.flatMap((file) => modules.getModuleInfo(file)?.dynamicallyImportedIds ?? [])
  const entries = [...new Set([...entriesOf(files), ...later.filter((file) => files.includes(file))])]
  const loads = entries.map((entry) => ({ name: basename(entry, ".js"), found: loadedBy(entry, modules) }))
  const leanest = loads.toSorted((a, b) => a.found.size - b.found.size)
  const laterNames = later.map((file) => basename(file, ".js"))
  const index = loadedBy(join(folder, "index.js"), modules)
  const loadsIt = (file) => (entry) => loads.some(({ name, found }) => name === entry && found.has(file))
  return (file) => {
    const [lean, whole] = [face.lean, face.entry].map(loadsIt(file))
    if (whole) return { name: `${lean ? face.lean : face.entry}-whole`, rank: lean ? 0 : 1 }
    const [first, second] = leanest.filter(
      ({ found, name }) => found.has(file) && !(index.has(file) && laterNames.includes(name))
    )
    if (second === undefined) return { name: first?.name, rank: 2 + 2 * leanest.length }
    const rank = 2 + leanest.indexOf(first)
    return index.has(file)
      ? { name: `${first.name}-shared`, rank }
      : { name: `${first.name}-${second.name}`, rank: leanest.length + rank }
  }
}

/** Chunks in the bundler's format. A group includes what its modules import, unless one of higher priority has it. */
const groupsOf = (files) => {
  let chunkOf
  return Array.from({ length: 2 * files.length }, (_, rank) => ({
    debugName: `rank ${rank}`,
    priority: 2 * files.length - rank,
    name: (file, modules) => {
      chunkOf ??= chunks(files, modules)
      const chunk = chunkOf(file)
      return chunk.rank === rank ? (chunk.name ?? null) : null
    }
  }))
}

/** Inlines the bundler's own functions, because they would be another module. */
const inlined = (code, functions) =>
  code.replace(/^import \{[^}]*\} from "[^"]*\/rolldown-runtime\.js";$/m, () => functions)

/** Bundles the modules of `dist`. The declarations next to them stay unchanged. */
export const bundle = async () => {
  const files = globSync(`${folder}/**/*.js`).toSorted()
  const isPublic = (file) => !/(^|\/)internal\//.test(nameOf(file))
  const made = await rolldown({
    input: Object.fromEntries(files.filter(isPublic).map((file) => [nameOf(file), file])),
    external: /^[^./]/,
    platform: "node",
    preserveEntrySignatures: "strict",
    experimental: { attachDebugInfo: "none" }
  })
  const { output } = await made.generate({
    format: "esm",
    chunkFileNames: "internal/[name].js",
    minifyInternalExports: false,
    comments: { annotation: true, jsdoc: false, legal: false },
    codeSplitting: { groups: groupsOf(files) }
  })
  await made.close()
  for (const file of files) rmSync(file)
  const isRuntime = ({ name }) => name === "rolldown-runtime"
  const functions = output
    .find(isRuntime)
    ?.code.replaceAll(/^(import|export) .*\n/gm, "")
    .trim()
  for (const { code, fileName } of output.filter((one) => !isRuntime(one))) {
    const file = join(folder, fileName)
    mkdirSync(dirname(file), { recursive: true })
    // Sources are indented by spaces, so tabs are the bundler's.
    writeFileSync(file, inlined(code, functions).replaceAll(/^\t+/gm, ""))
  }
}
