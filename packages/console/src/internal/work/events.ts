/**
 * Stores events of consumers that use the console's hook, of operations, and of changes in the answers of brokers. It keeps
 * a limited number. Alarms are kept separately, so a flood of retries does not displace them.
 */
import { Delay, type Event } from "@requeue/core"

/** The kinds of events: those of consumers, of operators, and of brokers. */
export type Kind = Exclude<Event.Event["_tag"], "Received" | "Succeeded"> | "Operation" | "Broker" | "NotKept"

/** An event. Its texts must be redacted before they are shown. */
export interface Told {
  /** The number of the event, which grows. */
  readonly seq: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly kind: Kind
  readonly broker: string
  /** The queue of the event; `undefined` for an event of the broker. */
  readonly queue: string | undefined
  /** The event in words, without texts of messages. */
  readonly words: string
  readonly id: string | undefined
  readonly error: { readonly name: string; readonly message: string } | undefined
  /** Whether the event needs attention. */
  readonly isBad: boolean
}

/** A new event. */
export type Coming = Pick<Told, "broker" | "isBad" | "kind" | "queue" | "words"> & Partial<Pick<Told, "error" | "id">>

/** Limits: alarms, other events, events of one second, and characters of texts. */
const most = { kept: 500, perSecond: 50, id: 200, name: 100, message: 500 }

/** All events. */
export interface Events {
  /** Returns all events, newest first. */
  readonly all: () => ReadonlyArray<Told>
  /** Returns the number of the newest event. */
  readonly last: () => number
  readonly add: (coming: Coming) => void
  /** Returns a function that adds the events of consumers on a broker. */
  readonly hook: (broker: string) => Event.Hook
  /** Whether a consumer reports its events. */
  readonly isFed: () => boolean
}

interface Said {
  readonly words: string
  readonly isBad?: boolean
  readonly error?: Told["error"]
}

/** Describes an event of a consumer in words; `undefined` for a success. */
const said = (event: Event.Event): Said | undefined => {
  switch (event._tag) {
    case "Received":
    case "Succeeded":
      return undefined
    case "AttemptFailed":
      return {
        words: `attempt ${event.attempts} failed${event.willRerun ? ", the handler reruns" : ""}`,
        error: event.error
      }
    case "RetryScheduled":
      return { words: `retry after ${Delay.format(event.delay)}`, error: event.error }
    case "DeadLettered":
      return { words: `dead letter in ${event.target}, ${event.reason}`, error: event.error, isBad: true }
    case "Dropped":
      return { words: `dropped, ${event.reason}`, error: event.error, isBad: true }
    case "Released":
      return { words: "given back" }
    case "SettleFailed":
      return { words: `the broker refused ${event.settlement}`, error: event.error, isBad: true }
    case "Quarantined":
      return { words: `in quarantine: the broker refuses ${event.settlement}`, error: event.error, isBad: true }
    case "LeaseLost":
      return { words: "lease lost", error: event.error, isBad: true }
    case "CallIgnored":
      return { words: `${event.call} came too late` }
    case "BackoffEntered":
      return {
        words: `pauses for ${Delay.format(event.wait)}, level ${event.level}, because of the ${event.because}`,
        isBad: true
      }
    case "BackoffLeft":
      return { words: `resumes: the ${event.because} works` }
  }
}

/** The newest events of one kind, with a limit for each second. */
const ring = () => {
  const kept: Array<Told> = []
  let [second, count] = [0, 0]
  return {
    kept,
    /** Whether this second has room for another event. */
    takes: (at: number): boolean => {
      const now = Math.floor(at / 1000)
      if (now !== second) [second, count] = [now, 0]
      return ++count <= most.perSecond
    },
    /** Returns the number of events of the previous second that had no room. */
    missed: (at: number): number => (Math.floor(at / 1000) === second ? 0 : Math.max(0, count - most.perSecond)),
    push: (told: Told): void => {
      kept.push(told)
      if (kept.length > most.kept) kept.shift()
    }
  }
}

/** Makes an empty store of events. `now` is in milliseconds since the epoch. */
export const make = (now: () => number): Events => {
  const rings = { bad: ring(), others: ring() }
  let [seq, isFed] = [0, false]
  const put = (into: typeof rings.bad, at: number, { error, id, ...rest }: Coming): void =>
    into.push({
      ...rest,
      seq: ++seq,
      at,
      id: id?.slice(0, most.id),
      error: error && { name: error.name.slice(0, most.name), message: error.message.slice(0, most.message) }
    })
  const tellMissed = (at: number): void => {
    for (const into of [rings.bad, rings.others]) {
      const missed = into.missed(at)
      if (missed === 0) continue
      into.takes(at)
      const words = `${missed} more events within a second were not kept`
      put(into, at, { kind: "NotKept", broker: "", queue: undefined, words, isBad: false })
    }
  }
  const add = (coming: Coming): void => {
    const at = now()
    tellMissed(at)
    const into = coming.isBad ? rings.bad : rings.others
    if (into.takes(at)) put(into, at, coming)
  }
  return {
    all: () => {
      tellMissed(now())
      return [...rings.bad.kept, ...rings.others.kept].toSorted((one, other) => other.seq - one.seq)
    },
    last: () => {
      tellMissed(now())
      return seq
    },
    add,
    isFed: () => isFed,
    hook: (broker) => {
      isFed = true
      return (event) => {
        const told = said(event)
        // Events of successes are skipped.
        if (told === undefined || event._tag === "Received" || event._tag === "Succeeded") return
        const { error, isBad = false, words } = told
        const id = "id" in event ? event.id : undefined
        add({ kind: event._tag, broker, queue: event.queue, words, isBad, id, error })
      }
    }
  }
}
