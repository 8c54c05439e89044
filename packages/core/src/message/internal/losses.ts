/** The parts of a value that JSON changes without an error, such as a Map, which becomes `{}`, or that it cannot write. */

/** One part of a body that JSON changes. */
export interface Loss {
  /** The path in the body, for example `body.lines[0].price`. */
  readonly path: string
  /** The value there, and what JSON makes of it. */
  readonly detail: string
}

/** Called with the first loss of the current encoding; `undefined` while no encoding is watched. */
let observer: ((loss: Loss) => void) | undefined

/** Encodes, and calls `onLoss` with the first part that JSON changes. Synchronous: a module variable reaches any codec. */
export const watch = <A>(onLoss: (loss: Loss) => void, encode: () => A): A => {
  const outer = observer
  observer = onLoss
  try {
    return encode()
  } finally {
    observer = outer
  }
}

/** Reports the first loss of an encoded value. Costs nothing while no encoding is watched. */
export const report = (value: unknown): void => {
  const loss = observer && find(value)
  if (loss !== undefined) observer!(loss)
}

/** The most values of a body that are checked. */
const limit = 1000

/** The first loss of a value that has a JSON form. */
export const find = (value: unknown): Loss | undefined => {
  let left = limit
  const at = (inner: unknown, path: string, isItem: boolean): Loss | undefined => {
    if (left-- <= 0) return undefined
    const detail = lossOf(inner, isItem)
    if (detail !== undefined) return { path, detail }
    if (typeof inner !== "object" || inner === null || hasForm(inner)) return undefined
    if (Array.isArray(inner)) return first(inner.entries(), ([index, item]) => at(item, `${path}[${index}]`, true))
    return first(Object.keys(inner), (key) => at(Reflect.get(inner, key), path + member(key), false))
  }
  try {
    return at(value, "body", true)
  } catch {
    // A getter or a proxy may throw when it is read again.
    return undefined
  }
}

/** Why JSON cannot write a value. */
export interface Refusal {
  readonly detail: string
  /** How to send it: a sentence without its full stop. */
  readonly remedy: string
}

/** Returns the first part of a value at which JSON fails: a BigInt or a cycle. `undefined` if there is neither. */
export const findRefusal = (value: unknown): Refusal | undefined => {
  const parents = new Map<object, string>()
  const at = (inner: unknown, path: string): Refusal | undefined => {
    if (typeof inner === "bigint") {
      return { detail: `${path} is a BigInt, which JSON cannot write`, remedy: `Send text: String(${path})` }
    }
    if (typeof inner !== "object" || inner === null || hasForm(inner)) return undefined
    const earlier = parents.get(inner)
    if (earlier !== undefined) {
      return {
        detail: `${path} is the same object as ${earlier}, which contains it; JSON cannot write a cycle`,
        remedy: `Leave ${path} out, or send its id`
      }
    }
    parents.set(inner, path)
    const found = Array.isArray(inner)
      ? first(inner.entries(), ([index, item]) => at(item, `${path}[${index}]`))
      : first(Object.keys(inner), (key) => at(Reflect.get(inner, key), path + member(key)))
    parents.delete(inner)
    return found
  }
  try {
    return at(value, "body")
  } catch {
    // A getter or a proxy may throw when it is read again.
    return undefined
  }
}

const first = <A, B>(values: Iterable<A>, find: (value: A) => B | undefined): B | undefined => {
  for (const value of values) {
    const found = find(value)
    if (found !== undefined) return found
  }
  return undefined
}

const member = (key: string): string => (/^[\w$]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`)

const hasForm = (value: object): boolean => typeof Reflect.get(value, "toJSON") === "function"

const lossOf = (value: unknown, isItem: boolean): string | undefined => {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? undefined : `${value}, which JSON turns into null`
    case "undefined":
      return isItem ? "undefined, which JSON turns into null" : undefined
    case "function":
    case "symbol":
      return `a ${typeof value}, which JSON ${isItem ? "turns into null" : "leaves out"}`
    case "object":
      return value === null ? undefined : objectLoss(value)
    default:
      return undefined
  }
}

/** Objects whose content JSON leaves out, by tag, since they may come from another realm. */
const contentless = new Set(
  [
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "Error",
    "Promise",
    "RegExp",
    "ArrayBuffer",
    "Response",
    "Request",
    "Headers",
    "FormData",
    "URLSearchParams",
    "Blob"
  ].map((name) => `[object ${name}]`)
)

const objectLoss = (value: object): string | undefined => {
  const tag = Object.prototype.toString.call(value)
  if (tag === "[object Date]" && Number.isNaN(Number(value))) return "an invalid Date, which JSON turns into null"
  if (hasForm(value)) return undefined
  const name = tag.slice("[object ".length, -1)
  if (contentless.has(tag)) return `${/^[AE]/.test(name) ? "an" : "a"} ${name}, whose content JSON leaves out`
  return ArrayBuffer.isView(value) ? `a ${name}, which JSON turns into an object` : undefined
}
