/** Drafts of edited letters, which are kept in memory for a while. */
import { type DeadLetters, LetterDraft } from "@requeue/operations"
import { createHash, randomUUID } from "node:crypto"
import { visible } from "../html.ts"
import { mark, type Redact } from "../../Redaction.ts"
import type { Place } from "../paths.ts"
import * as Json from "./json.ts"
import * as Letters from "./letters.ts"

/** A letter that an operator edits. Times are in milliseconds since the epoch. */
export interface Draft {
  readonly id: string
  readonly place: Place
  readonly operator: string
  readonly opened: number
  readonly key: string
  readonly letter: DeadLetters.DeadLetter
  /** The id of the letter as operators may see it. */
  readonly title: string
  /** The text of the body in the form. */
  readonly shown: string
  /** Whether the form shows formatted JSON that the letter has in one line. */
  readonly isLaidOut: boolean
  /** Whether the form shows headers. Only then can they be changed. */
  readonly hasHeaders: boolean
  /** The copy; `undefined` before the first preview. */
  readonly copy: LetterDraft.Content | undefined
}

/** The largest number of drafts, and the largest size of a body in bytes. */
const most = { drafts: 50, body: 64 * 1024 }

/** The largest size of a form with a draft in bytes. A form may encode each byte in three. */
export const formLimit = 4 * most.body

/** All drafts. */
export interface Drafts {
  readonly add: (draft: Draft) => void
  readonly of: (id: string) => Draft | undefined
  /** Returns other drafts of the same letter. */
  readonly others: (draft: Draft) => ReadonlyArray<Draft>
}

/** Makes an empty store of drafts. */
export const make = (): Drafts => {
  const drafts = new Map<string, Draft>()
  return {
    add: (draft) => {
      drafts.delete(draft.id)
      drafts.set(draft.id, draft)
      const [oldest] = drafts.keys()
      if (drafts.size > most.drafts && oldest !== undefined) drafts.delete(oldest)
    },
    of: (id) => drafts.get(id),
    others: ({ id, key, place }) =>
      [...drafts.values()].filter(
        (other) =>
          other.id !== id &&
          other.key === key &&
          other.place.broker === place.broker &&
          other.place.queue === place.queue
      )
  }
}

const textOf = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)

const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) as unknown } // The type of any JSON.
  } catch {
    return undefined
  }
}

/** Whether the hook leaves a part unchanged. */
const isLeft = (part: unknown, shown: unknown): boolean => JSON.stringify(part) === JSON.stringify(shown)

/** Formats a line of JSON if that loses nothing. */
const laidOut = (text: string): string => {
  if (text.includes("\n") || parsed(text) === undefined) return text
  return Json.indented(text, Number.POSITIVE_INFINITY)
}

/** Begins a draft, or returns why the letter cannot be edited. Throws the errors of the hook. */
export const begin = (
  letter: DeadLetters.DeadLetter,
  redact: Redact,
  { now, operator, place }: { readonly now: number; readonly operator: string; readonly place: Place }
): Draft | string => {
  if (letter.body.length > most.body) return `its body has more than ${most.body} bytes`
  const obstacle = LetterDraft.obstacle(letter)
  if (obstacle !== undefined) return obstacle
  const text = textOf(letter.body)
  if (visible(text) !== text) return "its body has characters that a page cannot show"
  const body = parsed(text)?.value ?? text
  const shown = redact({ headers: letter.headers, id: letter.id, body }, place)
  const laid = laidOut(text)
  if (!isLeft(body, shown.body)) return "a part of its body is hidden, and would be lost"
  const lines = Object.entries(letter.headers).flat().join("")
  return {
    id: randomUUID(),
    place,
    operator,
    opened: now,
    key: Letters.keyOf(letter),
    letter,
    title: shown.id ?? mark,
    shown: laid,
    isLaidOut: laid !== text,
    hasHeaders: isLeft(letter.headers, shown.headers) && visible(lines) === lines,
    copy: undefined
  }
}

/** The headers, one a line. */
export const headerLines = ({ headers }: Pick<LetterDraft.Content, "headers">): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n")

/** Replaces Windows line ends, which forms send. A letter with such line ends cannot be edited. */
const unix = (text: string): string => text.replaceAll("\r\n", "\n")

/** Returns the draft with its copy, or why the copy is wrong. */
export const write = (draft: Draft, headers: string, body: string): Draft | string => {
  const { hasHeaders, letter, shown } = draft
  const lines = hasHeaders ? unix(headers).trim() : headerLines(letter)
  // An empty line would end the headers, and a comment would be left out.
  const odd = lines.split("\n").find((line) => line.trim() === "" || line.startsWith("#"))
  if (lines !== "" && odd !== undefined) return `${JSON.stringify(odd)} is not a valid header. Write name: value`
  const text = `${lines}${lines === "" ? "" : "\n"}\n${unix(body)}`
  const read = LetterDraft.read(text, { headers: letter.headers, body: new TextEncoder().encode(shown) })
  if (read === "unchanged") return "nothing was changed"
  if ("problem" in read) return read.problem
  if (read.body.length > most.body) return `the body has more than ${most.body} bytes`
  return { ...draft, copy: read }
}

/** Returns the hash of the copy, because the console sends only the copy that the operator has seen. */
export const nameOf = ({ copy }: Draft): string =>
  createHash("sha256")
    .update(copy === undefined ? "" : headerLines(copy))
    .update("\n\n")
    .update(copy?.body ?? "")
    .digest("hex")
    .slice(0, 24)

/** Returns the text of the copy's body. */
export const bodyOf = ({ copy, shown }: Draft): string => (copy === undefined ? shown : textOf(copy.body))
