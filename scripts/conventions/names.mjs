/** Names that the sources must not contain. */
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

/** Words that no name of a file or declaration may contain, each with the field's own word. */
const anywhere = table({
  homeless: "unknownOrigin",
  hungry: "ready",
  judge: "decide",
  judgement: "decision",
  patience: "timeout",
  shelf: "held letters",
  sifted: "browsed",
  vices: "faults",
  wary: "throttled",
  wishes: "native options",
  workshop: "worker pool"
})

/** Whole names of files and exports. As a part of longer names, these words have other uses. */
const alone = table({
  again: "redelivered, or republish",
  blame: "attribute",
  bursts: "yield budget",
  certain: "verify",
  crowd: "in-flight limit",
  former: "legacy",
  formers: "legacy",
  hand: "receipt",
  outlet: "subscription reference",
  people: "operators",
  post: "session",
  presence: "connection count",
  seal: "encodeMessage",
  stay: "retention",
  tally: "count",
  together: "coalesce",
  twins: "duplicates"
})

/** Whole names of types. */
const types = table({
  Answer: "Result",
  Environment: "Dependencies, or Variables of a process",
  Facts: "Input",
  Wish: "Request"
})

const wordsOf = (name) => name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []

/** The field's word for a name that contains one of ours. Its `kind` is `file`, `type` or `name`. */
export const fieldWord = ({ isExported, kind, name }) =>
  (kind === "type" ? types.get(name) : undefined) ??
  (kind === "file" || isExported ? alone.get(name.toLowerCase()) : undefined) ??
  wordsOf(name)
    .map((word) => anywhere.get(word.toLowerCase()))
    .find((word) => word !== undefined)

/** Words that no page, docstring or message may contain. */
const texts = table({
  homeless: "of unknown origin",
  sifted: "browsed",
  vices: "faults"
})

const inTexts = new RegExp(`\\b(${[...texts.keys()].join("|")})\\b`, "gi")

/** The lines of a text that contain one of our words, each with the field's own. */
export const oldWords = (file, text) =>
  text.split("\n").flatMap((line, index) =>
    [...line.matchAll(inTexts)].map(([word]) => ({
      file,
      line: index + 1,
      text: `the word ${word}: the field's word is ${texts.get(word.toLowerCase())}`
    }))
  )
