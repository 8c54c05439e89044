/**
 * Loads modules with one place of one source file changed. `node --import` this, with mutants as JSON in REQUEUE_MUTANTS:
 * `[{ file, from, to }]`. Then `import("./module.ts?mutant=2")` imports a module on the third mutant. A mutant has its own
 * copy of the modules that import its file, directly or not, and shares all others; so import a module as it is before its
 * mutants. A text that is not there exactly once is an error, so that no mutant goes stale.
 */
import { readFileSync } from "node:fs"
import { registerHooks, stripTypeScriptTypes } from "node:module"
import { fileURLToPath } from "node:url"

const mutants = JSON.parse(process.env.REQUEUE_MUTANTS)
const marker = "?mutant="

const split = (url) => {
  const [path, index] = url.split(marker)
  return { path, index }
}

/** Makes what is not known yet. */
const once = (known, key, make) => {
  if (!known.has(key)) known.set(key, make())
  return known.get(key)
}

/** What imports each module of the sources. */
const importers = new Map()

/** The modules of each mutant that import its file, directly or not, and the file. */
const copied = new Map()

const copiesOf = (index) =>
  once(copied, index, () => {
    const copies = new Set(
      [...importers.keys()].filter((module) => module.endsWith(`/packages/${mutants[index].file}`))
    )
    // A set goes on with what is added meanwhile.
    for (const module of copies) for (const importer of importers.get(module) ?? []) copies.add(importer)
    return copies
  })

/** What was resolved for the modules as they are, and what their sources are without types: each copy has the same. */
const [resolutions, sources] = [new Map(), new Map()]

registerHooks({
  resolve: (specifier, context, next) => {
    if (context.parentURL === undefined) return next(specifier, context)
    const parent = split(context.parentURL)
    if (parent.path.includes("/node_modules/")) return next(specifier, context)
    const own = split(specifier)
    const resolved = once(resolutions, `${parent.path} ${own.path}`, () =>
      next(own.path, { ...context, parentURL: parent.path })
    )
    const { url } = resolved
    if (!url.startsWith("file:") || url.includes("/node_modules/")) return { ...resolved, shortCircuit: true }
    once(importers, url, () => new Set()).add(parent.path)
    const index = own.index ?? parent.index
    const isCopy = index !== undefined && copiesOf(index).has(url)
    return { ...resolved, shortCircuit: true, url: isCopy ? `${url}${marker}${index}` : url }
  },
  load: (url, context, next) => {
    const { index, path } = split(url)
    if (index === undefined) return next(url, context)
    const { file, from, to } = mutants[index]
    const read = () => readFileSync(fileURLToPath(path), "utf8")
    if (!path.endsWith(`/packages/${file}`)) {
      return { format: "module", source: once(sources, path, () => stripTypeScriptTypes(read())), shortCircuit: true }
    }
    const parts = read().split(from)
    if (parts.length !== 2) throw new Error(`${file} has the text of the mutant ${parts.length - 1} times: ${from}`)
    return { format: "module", source: stripTypeScriptTypes(parts.join(to)), shortCircuit: true }
  }
})
