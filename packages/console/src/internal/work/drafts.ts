/** Letters that operators edit: as they were, and as they are to be. They are kept here, in memory, for a while. */
import { type DeadLetters, LetterDraft } from "@requeue/operations"
import { createHash, randomUUID } from "node:crypto"
import { visible } from "../html.ts"
import { mark, type Redact } from "../../Redaction.ts"
import type { Place } from "../paths.ts"
import * as Json from "./json.ts"
import * as Letters from "./letters.ts"

/** A letter that somebody edits. Times are in milliseconds since the epoch. */
export interface Draft {
  readonly id: string
  readonly place: Place
  readonly operator: string
  readonly opened: number
  readonly key: string
  readonly letter: DeadLetters.DeadLetter
  /** The id of the letter, as people may see it. */
  readonly title: string
  /** The body as it is shown. */
  readonly shown: string
  /** Whether that is JSON with a line for each value, and the letter has it in one. */
  readonly isLaidOut: boolean
  /** Whether headers are shown, and so can be changed. */
  readonly hasHeaders: boolean
  /** The copy, once it was written. */
  readonly copy: LetterDraft.Content | undefined
}

/** Drafts that are kept, and bytes of the largest body. */
const most = { drafts: 50, body: 64 * 1024 }

/** Bytes of the largest form with a draft: each may take three in it. */
export const formLimit = 4 * most.body

/** All drafts. */
export interface Drafts {
  readonly add: (draft: Draft) => void
  readonly of: (id: string) => Draft | undefined
  /** Other drafts of the letter. */
  readonly others: (draft: Draft) => ReadonlyArray<Draft>
}

/** No drafts yet. */
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

/** Whether the hook leaves all of a part as it is. */
const isLeft = (part: unknown, shown: unknown): boolean => JSON.stringify(part) === JSON.stringify(shown)

/** A line of JSON is shown with a line for each value, unless something of it would be lost. */
const laidOut = (text: string): string => {
  if (text.includes("\n") || parsed(text) === undefined) return text
  return Json.indented(text, Number.POSITIVE_INFINITY)
}

/** Begins a draft, or says why the letter cannot be edited. What the hook does throw, this does. */
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

/** The headers, a line for each. */
export const headerLines = ({ headers }: Pick<LetterDraft.Content, "headers">): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n")

/** Forms have the line ends of Windows, and a letter with those is none that can be edited. */
const unix = (text: string): string => text.replaceAll("\r\n", "\n")

/** The draft with the copy that was written, or what is wrong with that. */
export const write = (draft: Draft, headers: string, body: string): Draft | string => {
  const { hasHeaders, letter, shown } = draft
  const lines = hasHeaders ? unix(headers).trim() : headerLines(letter)
  // In a text of headers and a body, an empty line ends the headers, and comments are left out.
  const odd = lines.split("\n").find((line) => line.trim() === "" || line.startsWith("#"))
  if (lines !== "" && odd !== undefined) return `${JSON.stringify(odd)} is not a valid header. Write name: value`
  const text = `${lines}${lines === "" ? "" : "\n"}\n${unix(body)}`
  const read = LetterDraft.read(text, { headers: letter.headers, body: new TextEncoder().encode(shown) })
  if (read === "unchanged") return "nothing was changed"
  if ("problem" in read) return read.problem
  if (read.body.length > most.body) return `the body has more than ${most.body} bytes`
  return { ...draft, copy: read }
}

/** A name of the copy, so that what goes is what was seen. */
export const nameOf = ({ copy }: Draft): string =>
  createHash("sha256")
    .update(copy === undefined ? "" : headerLines(copy))
    .update("\n\n")
    .update(copy?.body ?? "")
    .digest("hex")
    .slice(0, 24)

/** The text of the copy's body. */
export const bodyOf = ({ copy, shown }: Draft): string => (copy === undefined ? shown : textOf(copy.body))
