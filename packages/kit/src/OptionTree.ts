/**
 * Makes kinds of options with members: of lists, and of objects with known or free names. Errors name the path of a
 * wrong member at any depth.
 *
 * When to use: for an adapter's options that are more than numbers and words, with `AdapterOptions`.
 *
 * @example
 * ```ts
 * import { OptionKind } from "@requeue/core/port"
 * import { OptionTree } from "@requeue/kit"
 *
 * const hosts = OptionTree.list(OptionTree.struct({ name: OptionKind.nonEmpty, port: OptionTree.optional(OptionKind.whole(1)) }))
 * OptionTree.problem([{ name: "a" }, { name: "b", prot: 1 }], hosts)?.place // => "[1].prot"
 * ```
 */
import { OptionKind, OptionNames } from "@requeue/core/port"

/** The kind of an optional member. */
export interface Optional<out A = unknown> extends OptionKind.OptionKind<A> {
  readonly isOptional: true
}

/** The kinds of an object's members by name. */
export type Kinds = Readonly<Record<string, OptionKind.OptionKind>>

/** The type of an object with members of these kinds. */
export type Struct<Members extends Kinds> = {
  readonly [Name in keyof Members as Members[Name] extends Optional ? never : Name]: OptionKind.Value<Members[Name]>
} & {
  readonly [Name in keyof Members as Members[Name] extends Optional ? Name : never]?: OptionKind.Value<Members[Name]>
}

const compound = <A>(
  expected: string,
  members: NonNullable<OptionKind.OptionKind["members"]>
): OptionKind.OptionKind<A> => {
  const holds = (value: unknown) => members(value) !== undefined && problem(value, kind) === undefined
  const kind: OptionKind.OptionKind<A> = { expected, members, holds }
  return kind
}

/** Returns the same kind for each member of a value. */
const each = (value: object, kind: OptionKind.OptionKind): Kinds =>
  Object.fromEntries(Object.keys(value).map((name) => [name, kind]))

/** Makes a member optional: it may be missing or `undefined`. */
export const optional = <A>(kind: OptionKind.OptionKind<A>): Optional<A> => ({
  ...kind,
  isOptional: true,
  holds: (value) => value === undefined || kind.holds(value)
})

/** Makes the kind of a list whose items are of one kind. */
export const list = <A>(kind: OptionKind.OptionKind<A>): OptionKind.OptionKind<ReadonlyArray<A>> =>
  compound("an array", (value) => (Array.isArray(value) ? each(value, kind) : undefined))

/** Makes the kind of an object with free names and members of one kind. */
export const record = <A>(kind: OptionKind.OptionKind<A>): OptionKind.OptionKind<{ readonly [name: string]: A }> =>
  compound("an object", (value) => (OptionKind.isObject(value) ? each(value, kind) : undefined))

/** Makes the kind of an object with exactly these members. */
export const struct = <const Members extends Kinds>(members: Members): OptionKind.OptionKind<Struct<Members>> =>
  compound(`an object with ${Object.keys(members).join(", ")}`, (value) =>
    OptionKind.isObject(value) ? members : undefined
  )

/** A problem of a value, and its place. */
export interface Problem {
  /** The place in the value, such as `[1].port`; empty for the value itself. */
  readonly place: string
  /** The broken rule and the value, without texts or the content of objects, which may be secrets. */
  readonly detail: string
  readonly remedy: string | undefined
}

/** The `detail` of a {@link Problem} whose place has the name of no option. */
export const unknownOption = "unknown option"

const shown = (value: unknown): string =>
  value === undefined ? "" : `, got ${typeof value === "string" && value !== "" ? "a text" : OptionKind.show(value)}`

/** Returns the problem of the first member that is unknown or of the wrong kind; `undefined` if all members are right. */
export const problem = (value: unknown, kind: OptionKind.OptionKind): Problem | undefined => {
  const members = kind.members?.(value)
  if (members === undefined || !isContainer(value)) {
    if (kind.holds(value)) return undefined
    return { place: "", detail: `must be ${kind.expected}${shown(value)}`, remedy: kind.remedy?.(value) }
  }
  const source = problemOfSource(value, members)
  if (source !== undefined) return source
  const names = Object.keys(members)
  for (const name of new Set([...Object.keys(value), ...names])) {
    const place = Array.isArray(value) ? `[${name}]` : `.${name}`
    const member = Object.hasOwn(members, name) ? members[name] : undefined
    const inner = Object.hasOwn(value, name) ? value[name] : undefined
    if (member === undefined) {
      if (inner === undefined) continue
      return { place, detail: unknownOption, remedy: OptionNames.remedy(name, names) }
    }
    if (name === "") return { place, detail: "must be under a name that is not empty", remedy: undefined }
    const found = problem(inner, member)
    if (found !== undefined) return { ...found, place: place + found.place }
  }
  return undefined
}

/** Returns the problem of the first member that is inherited, a getter or not enumerable. */
export const problemOfSource = (value: object, members: Kinds): Problem | undefined => {
  const problem = OptionNames.problemOfSource(value, members)
  return problem && { place: `.${problem.name}`, detail: problem.detail, remedy: problem.remedy }
}

/** Converts each member of a value by its kind; see `OptionKind.read`. */
export const read = (value: unknown, kind: OptionKind.OptionKind): unknown => {
  const members = kind.members?.(value)
  if (members === undefined || !isContainer(value)) return kind.read === undefined ? value : kind.read(value)
  const member = (name: string, inner: unknown): unknown => {
    const of = Object.hasOwn(members, name) ? members[name] : undefined
    return of === undefined ? inner : read(inner, of)
  }
  if (Array.isArray(value)) return value.map((inner, index) => member(String(index), inner))
  return OptionKind.isPlain(value)
    ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, member(name, inner)]))
    : value
}

const isContainer = (value: unknown): value is Readonly<Record<string, unknown>> =>
  OptionKind.isObject(value) || Array.isArray(value)
