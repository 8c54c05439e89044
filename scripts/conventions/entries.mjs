/** The imports of a package: the source files that the `exports` of its manifest lead to. */

const targetsOf = (entry) => (typeof entry === "string" ? [entry] : Object.values(entry ?? {}).flatMap(targetsOf))

/** The source of a built file; a source is its own. */
const sourceOf = (target) => target.replace(/^\.\/dist\//, "./src/").replace(/(\.d)?\.([cm]?)[jt]s$/, ".$2ts")

/** The text that the `*` of a pattern matches; `undefined` if the text does not match. */
const match = (pattern, text) => {
  const [head, tail] = pattern.split("*")
  if (tail === undefined) return text === head ? "" : undefined
  const isMatch = text.length > head.length + tail.length && text.startsWith(head) && text.endsWith(tail)
  return isMatch ? text.slice(head.length, text.length - tail.length) : undefined
}

/** For each key of `exports` and each source that it names, the files of those that exist, each with the path to import. */
const resolved = ({ exports = {} }, files) => {
  const keys = Object.keys(exports)
  const isClosed = (subpath) => keys.some((key) => exports[key] === null && match(key, subpath) !== undefined)
  return keys.flatMap((key) =>
    [...new Set(targetsOf(exports[key]).map(sourceOf))]
      .filter((source) => /\.[cm]?ts$/.test(source))
      .map((source) => ({
        key,
        found: files.flatMap((file) => {
          const star = match(source, `./${file}`)
          const subpath = star === undefined ? key : key.replace("*", star)
          return star === undefined || isClosed(subpath) ? [] : [{ file, subpath }]
        })
      }))
  )
}

/**
 * The keys of `exports` with their files: none for a mistake, several for a pattern. A file that another key closes with `null`
 * is left out. `files` are relative to the package, such as `src/index.ts`.
 */
export const entries = (manifest, files) =>
  resolved(manifest, files).map(({ found, key }) => ({ key, files: found.map(({ file }) => file) }))

/** Each file that can be imported, with its path, such as `./message/Delay`; of several paths, the first key's. */
export const importable = (manifest, files) =>
  new Map(
    resolved(manifest, files)
      .flatMap(({ found }) => found)
      .toReversed()
      .map(({ file, subpath }) => [file, subpath])
  )
