/** Stories: small histories, told as what happens one after the other. */
import type { Asked, Call, Entry, Fact, Given } from "../src/History.ts"
import { queue, type Scenario, type Sending, type Version } from "../src/Scenario.ts"

/** A version of the program with a plain policy. */
const version: Version = {
  maxAttempts: 3,
  maxDeliveries: 13,
  immediate: 0,
  backoff: [1000, 5000],
  maxAge: undefined,
  deadLetter: "work.dlq",
  concurrency: 1,
  prefetch: 0,
  batch: undefined,
  handlerTimeout: 10_000,
  drainTimeout: 1000,
  consumerBackoff: undefined,
  hook: "none",
  redact: "none"
}

/** A process with true clocks. */
export const process = (name: string): Scenario["processes"][number] => ({
  name,
  versions: [0],
  startsAt: 0,
  lives: [],
  freezes: [],
  clock: { offset: 0, speed: 1, jumps: [] }
})

/** A message of a program of ours, with a good body. */
export const sending = (key: number): Sending => ({
  key,
  at: 0,
  by: "ours",
  id: `m${key}`,
  delay: 0,
  body: "good",
  runs: []
})

export type Changes = Partial<Omit<Scenario, "versions">> & { readonly version?: Partial<Version> }

/** A world without faults, of processes `a` and `b`. */
export const scenario = ({ version: changed, ...changes }: Changes = {}): Scenario => ({
  seed: 1,
  kind: "rabbitmq",
  latency: 1,
  lease: 0,
  versions: [{ ...version, ...changed }],
  processes: [process("a"), process("b")],
  sendings: [sending(1), sending(2), sending(3)],
  refusals: [],
  operations: [],
  rates: { cut: 0, lostAnswer: 0, lostRequest: 0, late: 0, twice: 0, busy: 0, echo: 0 },
  calmAt: 1000,
  ...changes
})

/** A settlement as it is asked. */
export const asked = (tag: Asked["tag"], details: Partial<Asked> = {}): Asked => ({
  tag,
  delay: 0,
  reason: undefined,
  queue: tag === "DeadLetter" ? "work.dlq" : undefined,
  cut: 0,
  ...details
})

export const ack = asked("Ack")
export const release = asked("Release")
export const retry = (delay: number): Asked => asked("Retry", { delay })
export const deadLetter = (reason: string): Asked => asked("DeadLetter", { reason })

/** A call on one message, or on the whole batch. */
export const call = (name: Call["name"], key?: number, delay?: number): Call => ({ name, key, delay })

interface Ending {
  readonly calls?: ReadonlyArray<Call>
  readonly takes?: number
  readonly how?: "returned" | "threw" | "interrupted"
  readonly error?: string | undefined
}

interface Handed {
  readonly copy: number
  readonly key: number
  readonly process: string
  readonly attempts: number
}

type FactOf<Tag extends Fact["_tag"]> = Extract<Fact, { readonly _tag: Tag }>

/** A story that begins at 0. Broker, clients and handlers do what fits together, unless they are told by `say`. */
export const make = () => {
  const history: Array<Entry> = []
  const handed = new Map<number, Handed>()
  const counts = new Map<number, number>()
  const queues = new Map<number, string>()
  const runs = new Map<number, string>()
  let now = 0
  let last = 100

  const say = (...facts: ReadonlyArray<Fact>): void => {
    for (const fact of facts) history.push({ ...fact, at: now })
  }
  const of = (delivery: number): Handed => {
    const found = handed.get(delivery)
    if (found === undefined) throw new RangeError(`Story: delivery must be handed out before, got ${delivery}`)
    return found
  }
  const store = (key: number, details: Partial<FactOf<"Stored">> = {}): number => {
    const copy = ++last
    const plain = { queue, due: now, process: undefined, of: undefined, native: false, reason: undefined, cut: 0 }
    queues.set(copy, details.queue ?? queue)
    say({ _tag: "Stored", copy, key, ...plain, ...details })
    return copy
  }
  const queueOf = (copy: number): string => queues.get(copy) ?? queue
  const gone = (copy: number, key: number, why: FactOf<"Gone">["why"], delivery?: number): void =>
    say({ _tag: "Gone", copy, key, queue: queueOf(copy), why, delivery })
  const back = (delivery: number, why: FactOf<"Back">["why"], delay = 0): void => {
    const { copy, key } = of(delivery)
    say({ _tag: "Back", copy, key, delivery, due: now + delay, why })
  }
  const begin = (...deliveries: ReadonlyArray<number | Given>): number => {
    const run = ++last
    const given = deliveries.map((each): Given => {
      if (typeof each !== "number") return each
      const { attempts, key } = of(each)
      return { key, delivery: each, attempts }
    })
    const { process } = of(given[0]?.delivery ?? 0)
    runs.set(run, process)
    say({ _tag: "Began", process, run, given })
    return run
  }
  const processOf = (run: number): string => runs.get(run) ?? "nobody"
  const calls = (run: number, ...all: ReadonlyArray<Call>): void => {
    for (const each of all) say({ _tag: "Called", process: processOf(run), run, call: each })
  }
  const ended = (run: number, { error, how = error === undefined ? "returned" : "threw" }: Ending = {}): void =>
    say({ _tag: "Ended", process: processOf(run), run, how, error })
  const ask = (delivery: number, settlement: Asked): void =>
    say({ _tag: "Asked", process: of(delivery).process, delivery, settlement })
  const answer = (delivery: number, settlement: Asked, fate?: FactOf<"Answered">["fate"]): void =>
    say({ _tag: "Answered", process: of(delivery).process, delivery, settlement, fate })

  /** A copy is handed out; answers the delivery, which is on its way. */
  const handOut = (copy: number, key: number, process: string, attempts?: number): number => {
    const count = (counts.get(copy) ?? 0) + 1
    counts.set(copy, count)
    const delivery = ++last
    handed.set(delivery, { copy, key, process, attempts: attempts ?? count })
    say({ _tag: "HandedOut", copy, delivery, key, queue: queueOf(copy), process, count })
    return delivery
  }
  const arrive = (delivery: number): void => {
    const { attempts, copy, key, process } = of(delivery)
    say({ _tag: "Arrived", delivery, key, queue: queueOf(copy), process, attempts })
  }

  return {
    history,
    say,
    store,
    gone,
    back,
    begin,
    calls,
    ended,
    ask,
    answer,
    wait: (millis: number): void => void (now += millis),
    start: (process: string, credit = 1): void =>
      say({ _tag: "Started", process, version: 0 }, { _tag: "Credit", process, limit: credit }),
    /** A message is sent, stored and confirmed; answers its copy. */
    send: (key: number, earliest = now): number => {
      say({ _tag: "Sending", key, id: `m${key}`, queue, earliest })
      const copy = store(key, { due: earliest })
      say({ _tag: "Sent", key })
      return copy
    },
    handOut,
    arrive,
    /** A copy is handed out and arrives; answers the delivery. */
    deliver: (copy: number, key: number, process: string, attempts?: number): number => {
      const delivery = handOut(copy, key, process, attempts)
      arrive(delivery)
      return delivery
    },
    /** A whole handler run. */
    run: (delivery: number | Given, ending: Ending = {}): void => {
      const run = begin(delivery)
      now += ending.takes ?? 0
      calls(run, ...(ending.calls ?? []))
      ended(run, ending)
    },
    /** A settlement that is asked, done by the broker, and answered; answers the copy that it stored, or 0. */
    settle: (delivery: number, settlement: Asked): number => {
      const { copy, key, process } = of(delivery)
      const { delay, queue: to = "work.dlq", reason, tag } = settlement
      ask(delivery, settlement)
      let stored = 0
      if (tag === "Retry") stored = store(key, { process, of: delivery, due: now + delay })
      if (tag === "DeadLetter") stored = store(key, { process, of: delivery, queue: to, reason })
      if (tag === "Release") back(delivery, "asked", delay)
      else gone(copy, key, "settled", delivery)
      answer(delivery, settlement)
      return stored
    },
    kill: (process: string): void => say({ _tag: "Killed", process, because: "scenario" }),
    drain: (process: string): void => say({ _tag: "Draining", process }),
    end: (because: "rest" | "time" = "rest"): void => say({ _tag: "End", because })
  }
}

/** A story that is told. */
export type Story = ReturnType<typeof make>
