/** Names that nothing in the sources may have. */
import { runInNewContext } from "node:vm"

const library =
  "ArrayLike AsyncDisposable AsyncGenerator AsyncIterable AsyncIterableIterator AsyncIterator Awaited Capitalize " +
  "ConstructorParameters Disposable Exclude Extract Generator InstanceType Iterable IterableIterator IteratorResult " +
  "Lowercase NoInfer NonNullable Omit OmitThisParameter Parameters Partial Pick PromiseLike PropertyDescriptor " +
  "PropertyKey Readonly ReadonlyArray ReadonlyMap ReadonlySet Record Required ReturnType ThisParameterType ThisType " +
  "Uncapitalize Uppercase"

/** JavaScript's own globals, without those of Node and of browsers, and the types of TypeScript's library. */
export const globals = new Set([...runInNewContext("Object.getOwnPropertyNames(globalThis)"), ...library.split(" ")])

const table = (words) => new Map(Object.entries(words))

/** Words that are in no name of a file or of anything declared, each with the field's own. */
const anywhere = table({
  hungry: "ready",
  judge: "decide",
  judgement: "decision",
  patience: "timeout",
  workshop: "worker pool"
})

/** Whole names of files and exports. As a part of longer names, these words have other uses. */
const alone = table({
  crowd: "in-flight limit",
  hand: "receipt",
  post: "session",
  presence: "connection count",
  stay: "retention",
  tally: "count"
})

/** Whole names of types. */
const types = table({
  Answer: "Result",
  Environment: "Dependencies, or Variables of a process",
  Facts: "Input",
  Wish: "Request"
})

const wordsOf = (name) => name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []

/** The field's word for a name that has one of ours. Its `kind` is `file`, `type` or `name`. */
export const fieldWord = ({ isExported, kind, name }) =>
  (kind === "type" ? types.get(name) : undefined) ??
  (kind === "file" || isExported ? alone.get(name.toLowerCase()) : undefined) ??
  wordsOf(name)
    .map((word) => anywhere.get(word.toLowerCase()))
    .find((word) => word !== undefined)
