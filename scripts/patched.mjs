/**
 * A plugin of vitest: `import("./harness.ts?patch=...")` imports a module, and all that it imports by relative paths, with
 * one text of one file replaced. Nothing is written. Each patch has its own copy of the modules that import the patched
 * file, directly or not; it shares all other modules, because compiling them again is most of a mutant's time.
 *
 * A patch is JSON, encoded for a URL: `{ file, text, replacement }`. `file` is the end of a path, and `text` must occur in
 * it once.
 */
import { existsSync, readFileSync } from "node:fs"
import { posix as path } from "node:path"
import { imports } from "./arrows.mjs"

const marker = "?patch="

const split = (id) => {
  const at = id.indexOf(marker)
  return at < 0 ? undefined : { path: id.slice(0, at), query: id.slice(at) }
}

/** The source with the patch in it; unchanged if the patch is for another file. */
export const patch = (path, source, { file, replacement, text }) => {
  if (!path.endsWith(file)) return source
  const times = source.split(text).length - 1
  if (times !== 1) throw new Error(`patch of ${file}: expected its text once, found it ${times} times: ${text}`)
  return source.replace(text, () => replacement)
}

const patchOf = (query) => JSON.parse(decodeURIComponent(query.slice(marker.length)))

/** Returns whether a module is a file, or imports it by relative paths, directly or not. `importsOf` returns its imports. */
export const reaches = (module, file, importsOf, seen = new Set()) => {
  if (module.endsWith(file)) return true
  if (seen.has(module)) return false
  seen.add(module)
  return importsOf(module).some(
    (specifier) =>
      specifier.startsWith(".") && reaches(path.join(path.dirname(module), specifier), file, importsOf, seen)
  )
}

/** The imports that a module still has when it is compiled. */
export const compiledImports = (source) => imports(source.replace(/^(?:import|export) type [^"=]+ from "[^"]*"/gm, ""))

/** The plugin. */
export const patched = () => {
  const known = new Map()
  const importsOf = (module) => {
    if (!known.has(module)) known.set(module, existsSync(module) ? compiledImports(readFileSync(module, "utf8")) : [])
    return known.get(module)
  }
  return plugin(importsOf, (changed) => known.delete(changed))
}

const plugin = (importsOf, forget) => ({
  name: "requeue:patched",
  enforce: "pre",
  watchChange: forget,
  async resolveId(specifier, importer, options) {
    const own = split(specifier)
    const inherited = importer === undefined ? undefined : split(importer)
    if (own === undefined && (inherited === undefined || !specifier.startsWith("."))) return undefined
    const resolved = await this.resolve(own?.path ?? specifier, inherited?.path ?? importer, {
      ...options,
      skipSelf: true
    })
    if (resolved === null) return null
    const { query } = own ?? inherited
    return reaches(resolved.id, patchOf(query).file, importsOf)
      ? { ...resolved, id: `${resolved.id}${query}` }
      : resolved
  },
  transform(code, id) {
    const found = split(id)
    if (found === undefined) return undefined
    return { code: patch(found.path, code, patchOf(found.query)), map: null }
  }
})
