/**
 * Loads modules with one place of one source file changed. `node --import` this, with mutants as JSON in REQUEUE_MUTANTS:
 * `[{ file, from, to }]`. Then `import("./module.ts?mutant=2")` imports a module on the third mutant. A mutant has its own
 * copy of the modules that import its file, directly or not, and shares all others; so import a module as it is before its
 * mutants. A text that is not there exactly once is an error, so that no mutant goes stale.
 */
import { registerHooks } from "node:module"

const mutants = JSON.parse(process.env.REQUEUE_MUTANTS)
const marker = "?mutant="

const split = (url) => {
  const [path, index] = url.split(marker)
  return { path, index }
}

/** What each module of the sources imports. */
const imports = new Map()

const reaches = (module, file, seen = new Set()) => {
  if (module.endsWith(`/packages/${file}`)) return true
  if (seen.has(module)) return false
  seen.add(module)
  return [...(imports.get(module) ?? [])].some((imported) => reaches(imported, file, seen))
}

registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context)
    if (context.parentURL === undefined || resolved.url.includes("/node_modules/")) return resolved
    const parent = split(context.parentURL)
    const { index = parent.index, path } = split(resolved.url)
    imports.set(parent.path, (imports.get(parent.path) ?? new Set()).add(path))
    const isCopy = index !== undefined && reaches(path, mutants[index].file)
    return { ...resolved, url: isCopy ? `${path}${marker}${index}` : path }
  },
  load: (url, context, next) => {
    const loaded = next(url, context)
    const { index, path } = split(url)
    if (index === undefined) return loaded
    const { file, from, to } = mutants[index]
    if (!path.endsWith(`/packages/${file}`)) return loaded
    const parts = String(loaded.source).split(from)
    if (parts.length !== 2) throw new Error(`${file} has the text of the mutant ${parts.length - 1} times: ${from}`)
    return { ...loaded, source: parts.join(to) }
  }
})
