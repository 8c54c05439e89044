/**
 * A plugin of vitest: `import("./harness.ts?patch=...")` imports a module, and all that it imports by relative paths, with
 * one text of one file replaced. Nothing is written, and each patch has modules of its own.
 *
 * A patch is JSON, encoded for a URL: `{ file, text, replacement }`. `file` is the end of a path, and `text` must occur in
 * it once.
 */
const marker = "?patch="

const split = (id) => {
  const at = id.indexOf(marker)
  return at < 0 ? undefined : { path: id.slice(0, at), query: id.slice(at) }
}

/** The source with the patch in it; as it is where the patch concerns another file. */
export const patch = (path, source, { file, replacement, text }) => {
  if (!path.endsWith(file)) return source
  const times = source.split(text).length - 1
  if (times !== 1) throw new Error(`patch of ${file}: expected its text once, found it ${times} times: ${text}`)
  return source.replace(text, () => replacement)
}

/** The plugin. */
export const patched = () => ({
  name: "requeue:patched",
  enforce: "pre",
  async resolveId(specifier, importer, options) {
    const own = split(specifier)
    const inherited = importer === undefined ? undefined : split(importer)
    if (own === undefined && (inherited === undefined || !specifier.startsWith("."))) return undefined
    const resolved = await this.resolve(own?.path ?? specifier, inherited?.path ?? importer, {
      ...options,
      skipSelf: true
    })
    return resolved && { ...resolved, id: `${resolved.id}${(own ?? inherited).query}` }
  },
  transform(code, id) {
    const found = split(id)
    if (found === undefined) return undefined
    const wanted = JSON.parse(decodeURIComponent(found.query.slice(marker.length)))
    return { code: patch(found.path, code, wanted), map: null }
  }
})
