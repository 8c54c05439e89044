/** The ends of the messages of a trial's world, from its history. */
import * as Verdict from "../check/internal/Verdict.ts"
import type { Asked, Entry, History } from "../History.ts"
import { queue } from "../Scenario.ts"

/** The end of one message, and the way to it. */
export interface Fate {
  readonly sentAt: number
  isSent: boolean
  /** Whether the broker had it, even if its send failed. */
  isStored: boolean
  runs: number
  /** When a run succeeded first: by its call, or at its end if it made none. */
  doneAt: number | undefined
  isRepeated: boolean
  isLetter: boolean
  isForgotten: boolean
  /** Its copies that wait in the queue, or are being delivered. */
  readonly queued: Set<number>
}

interface Run {
  readonly fate: Fate
  readonly key: number
  readonly delivery: number
  verdict: Verdict.Verdict
}

type Of<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>

/** The runs whose end is not known yet, by their number and by their delivery. */
class Runs {
  readonly #byNumber = new Map<number, Run>()
  readonly #byDelivery = new Map<number, number>()

  begin({ given, run }: Of<"Began">, fateOf: (key: number) => Fate): void {
    for (const { delivery, key } of given) {
      const fate = fateOf(key)
      fate.runs++
      fate.isRepeated ||= fate.doneAt !== undefined
      this.#byNumber.set(run, { fate, key, delivery, verdict: Verdict.none })
      this.#byDelivery.set(delivery, run)
    }
  }

  call({ call, run }: Of<"Called">): void {
    const found = this.#byNumber.get(run)
    if (found !== undefined) found.verdict = Verdict.after(found.verdict, call, found.key)
  }

  end({ at, how, run }: Of<"Ended">): void {
    const { tag = how === "returned" ? "ack" : "retry" } = this.#byNumber.get(run)?.verdict ?? {}
    this.#close(run, at, tag === "ack")
  }

  /** A run that the core settles before its end was decided by a call, or its time is over. */
  settle(delivery: number, { tag }: Asked, at: number): void {
    const run = this.#byDelivery.get(delivery)
    if (run !== undefined) this.#close(run, at, tag === "Ack")
  }

  #close(run: number, at: number, isDone: boolean): void {
    const found = this.#byNumber.get(run)
    if (found === undefined) return
    this.#byNumber.delete(run)
    this.#byDelivery.delete(found.delivery)
    if (isDone) found.fate.doneAt ??= at
  }
}

const store = (fate: Fate, { copy, queue: where }: Of<"Stored">): void => {
  fate.isStored = true
  if (where === queue) fate.queued.add(copy)
  else fate.isLetter = true
}

const remove = (fate: Fate, { copy, why }: Of<"Gone">): void => {
  fate.queued.delete(copy)
  fate.isForgotten ||= why === "forgotten"
}

/** The fates of all messages of a history. */
export const of = (history: History): ReadonlyArray<Fate> => {
  const fates = new Map<number, Fate>()
  const fateOf = (key: number): Fate => fates.get(key)!
  const runs = new Runs()
  for (const entry of history) {
    if (entry._tag === "Sending") {
      fates.set(entry.key, {
        sentAt: entry.at,
        isSent: false,
        isStored: false,
        runs: 0,
        doneAt: undefined,
        isRepeated: false,
        isLetter: false,
        isForgotten: false,
        queued: new Set()
      })
    } else if (entry._tag === "Sent") fateOf(entry.key).isSent = true
    else if (entry._tag === "Stored") store(fateOf(entry.key), entry)
    else if (entry._tag === "Gone") remove(fateOf(entry.key), entry)
    else if (entry._tag === "Began") runs.begin(entry, fateOf)
    else if (entry._tag === "Called") runs.call(entry)
    else if (entry._tag === "Asked") runs.settle(entry.delivery, entry.settlement, entry.at)
    else if (entry._tag === "Ended") runs.end(entry)
  }
  return [...fates.values()]
}

/** The ends of messages whose handler never succeeded. */
export type End = "deadLettered" | "forgotten" | "unfinished" | "dropped"

/** The end of a message; `undefined` for one that the broker never had. */
export const endOf = ({ doneAt, isForgotten, isLetter, isStored, queued }: Fate): End | "succeeded" | undefined => {
  if (doneAt !== undefined) return "succeeded"
  if (isLetter) return "deadLettered"
  if (queued.size > 0) return "unfinished"
  if (isForgotten) return "forgotten"
  return isStored ? "dropped" : undefined
}
