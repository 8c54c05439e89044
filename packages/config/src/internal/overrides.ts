/** Applies environment variables that override values of a file. */
import { OptionNames } from "@requeue/core/port"
import type * as StrictSchema from "../StrictSchema.ts"
import { isObject, leaves, type Path, typed } from "./values.ts"

/** The environment variables of a process. */
export type Variables = Readonly<Record<string, string | undefined>>

/** Returns the variable for a path: `REQUEUE_QUEUES_ORDERS_RETRY_MAX_RETRIES` for `queues.orders.retry.maxRetries`. */
export const variableOf = (path: Path): string =>
  ["requeue", ...path]
    .map((key) =>
      String(key)
        .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, "_")
        .replaceAll(/[^A-Za-z0-9]+/g, "_")
        .toUpperCase()
    )
    .join("_")

const keysOf = (file: Readonly<Record<string, unknown>>, section: string): ReadonlyArray<string> =>
  Object.keys(isObject(file[section]) ? file[section] : {})

/** Returns the paths that variables may override: those of the file's values, and those that choose a broker. */
const slots = (file: Readonly<Record<string, unknown>>): ReadonlyArray<Path> => [
  ["broker"],
  ...keysOf(file, "brokers").map((name) => ["brokers", name, "url"]),
  ...keysOf(file, "queues").map((name) => ["queues", name, "broker"]),
  ...leaves(file)
]

const set = (value: unknown, [key, ...rest]: Path, text: string): unknown => {
  if (key === undefined) return typed(value, text)
  if (Array.isArray(value)) return value.map((item, index) => (index === key ? set(item, rest, text) : item))
  const object = isObject(value) ? value : {}
  return { ...object, [key]: set(object[key], rest, text) }
}

const isOverride = (name: string): boolean => /^REQUEUE_(BROKER$|(BROKERS|QUEUES|POLICIES)_)/.test(name)

/** Turns brokers that are a URL into objects, so every broker has its `url`. */
const normal = (file: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  if (!isObject(file["brokers"])) return file
  const brokers = Object.entries(file["brokers"]).map(
    // Variables are filled in only inside objects, so another value must not count as a broker.
    ([name, url]) => [name, typeof url === "string" ? { url } : isObject(url) ? url : undefined] as const
  )
  return { ...file, brokers: Object.fromEntries<unknown>(brokers) }
}

/** A file after variables have overridden values. */
export interface Overridden {
  readonly value: unknown
  /** The paths of values that variables have set, as JSON. `${NAME}` in such a value is not filled in. */
  readonly set: ReadonlySet<string>
  readonly problems: ReadonlyArray<StrictSchema.Problem>
}

/** Returns the problem of a variable that names no value in the file. `others` are values that the file may have. */
const overridesNothing = (
  name: string,
  file: Readonly<Record<string, unknown>>,
  found: ReadonlyMap<string, unknown>,
  others: ReadonlyArray<Path>
): StrictSchema.Problem => {
  const absent = others.find((path) => variableOf(path) === name)
  if (absent !== undefined) {
    const detail = `the file has no ${absent.join(".")} that this environment variable could override`
    return { path: [name], detail, remedy: `Write ${absent.join(".")} in the file first, or unset ${name}` }
  }
  // Of a name that begins right, only the rest can be wrong.
  const items = ["brokers", "queues", "policies"].flatMap((section) =>
    keysOf(file, section).map((key) => [section, key])
  )
  const right = items.map((item) => `${variableOf(item)}_`).find((start) => name.startsWith(start)) ?? ""
  const known = [...found.keys(), ...others.map(variableOf)].filter((each) => each.startsWith(right))
  const meant = OptionNames.nearest(
    name.slice(right.length),
    known.map((each) => each.slice(right.length))
  )
  return {
    path: [name],
    detail: `the environment variable ${JSON.stringify(name)} overrides nothing in the file`,
    remedy:
      meant === undefined ? `Write the value in the file first, or unset ${name}` : `Did you mean ${right}${meant}?`
  }
}

/**
 * Puts the values of environment variables into a file. A variable that overrides nothing is a problem. `allowed` are the
 * paths that each entry of a section may have.
 */
export const override = (
  given: unknown,
  environment: Variables,
  allowed: Readonly<Record<string, ReadonlyArray<Path>>> = {}
): Overridden => {
  if (!isObject(given)) return { value: undefined, set: new Set(), problems: [] }
  const written = normal(given)
  let file: unknown = written
  const found = Map.groupBy(slots(written), variableOf)
  const others = Object.entries(allowed).flatMap(([section, paths]) =>
    keysOf(written, section).flatMap((key) => paths.map((path) => [section, key, ...path]))
  )
  const problems: Array<StrictSchema.Problem> = []
  const done = new Set<string>()
  for (const [name, text] of Object.entries(environment)) {
    if (text === undefined || !isOverride(name)) continue
    const paths = [...new Map((found.get(name) ?? []).map((path) => [JSON.stringify(path), path])).values()]
    const [path] = paths
    if (path === undefined) {
      problems.push(overridesNothing(name, written, found, others))
    } else if (paths.length > 1) {
      const detail = `this environment variable could override ${paths.map((p) => p.join(".")).join(" or ")}`
      problems.push({ path: [name], detail, remedy: "Rename one of these in the file" })
    } else {
      file = set(file, path, text)
      done.add(JSON.stringify(path))
    }
  }
  return { value: file, set: done, problems }
}
