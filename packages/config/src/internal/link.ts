/** Turns a decoded file into values, and looks up the names of policies and brokers. */
import { Codec, ConsumerBackoff, QueueDefinition, Relay, RetryPolicy } from "@requeue/core"
import { BrokerUrl, ConsumerOptions, OptionKind, OptionNames } from "@requeue/core/port"
import * as Result from "effect/Result"
import type { ConfigFile } from "../ConfigFile.ts"
import type { ConfiguredQueue } from "../ConfiguredQueue.ts"
import * as StrictSchema from "../StrictSchema.ts"
import type { ofBroker } from "./connectOptions.ts"

/** The values of a file. */
export interface Linked {
  readonly defaultBroker: string | undefined
  readonly policies: Readonly<Record<string, RetryPolicy.RetryPolicy>>
  readonly queues: Readonly<Record<string, ConfiguredQueue>>
  /** Returns the queues of a broker; see `Configuration.queuesOn`. */
  readonly queuesOn: (broker: string) => ReadonlyArray<ConfiguredQueue>
}

type Written = NonNullable<ConfigFile["queues"]>[string]

// Any, because the file does not say what type the bodies have.
const codecs: Readonly<Record<NonNullable<Written["codec"]>, Codec.Codec<any>>> = {
  json: Codec.json,
  text: Codec.text,
  bytes: Codec.bytes
}

/** Returns the problem of an unknown name. Text that may hold a password, such as a URL, is not shown. */
export const unknown = (
  what: "broker" | "policy" | "queue",
  name: string,
  known: ReadonlyArray<string>
): Pick<StrictSchema.Problem, "detail" | "remedy"> => {
  const names = known.map(BrokerUrl.withoutPassword).join(", ")
  if (what === "broker" && /:\/\/|:.*@/s.test(name)) {
    const detail = "the value must be the name of a broker, got a URL"
    return { detail, remedy: `Allowed: ${names}. To change the URL of a broker, set REQUEUE_BROKERS_<NAME>_URL` }
  }
  const detail = `there is no ${what} named ${BrokerUrl.withoutPassword(name)}`
  return { detail, remedy: OptionNames.remedy(name, known) }
}

/** Returns the problem of a broker's name, which may be any value in a program without types. */
export const problemOfBroker = (name: unknown, known: ReadonlyArray<string>): StrictSchema.Problem | undefined => {
  if (name === undefined) {
    const names = known.map(BrokerUrl.withoutPassword)
    const remedy = `Write broker: ${names[0]} in the file, or choose one of the brokers ${names.join(", ")}`
    return { path: ["broker"], detail: "the file sets no default broker", remedy }
  }
  if (typeof name !== "string") {
    const detail = `the name of a broker must be text, got ${OptionKind.show(name)}`
    return { path: ["brokers"], detail, remedy: 'Write connect("NAME", options), or connect() for the default' }
  }
  if (known.includes(name)) return undefined
  return { path: ["brokers"], ...unknown("broker", name, known) }
}

/** The options of a broker in the file; a broker that is only a URL has none. */
export const optionsOf = (broker: ConfigFile["brokers"][string] | undefined) =>
  typeof broker === "object" ? broker : ({} as { readonly [Option in (typeof ofBroker)[number]]?: undefined }) // no option is set

/** Returns the problems of stores that are not another broker, that several brokers have in one namespace, or that have a store. */
const wrongStores = ({ brokers }: ConfigFile): ReadonlyArray<StrictSchema.Problem> =>
  Object.entries(brokers).flatMap(([name, broker]) => {
    const { store, storeNamespace } = optionsOf(broker)
    if (store === undefined) return []
    const path = ["brokers", name, "store"]
    if (store === name) {
      const remedy = "Write the name of another broker, or remove store: the transactions of a database need none"
      return [{ path, detail: "a broker cannot be its own store", remedy }]
    }
    const other = Object.keys(brokers).find((each) => {
      const options = optionsOf(brokers[each])
      return each !== name && options.store === store && options.storeNamespace === storeNamespace
    })
    if (other !== undefined) {
      const detail = `${other} has the same store, so the relay of one broker would publish the messages of the other`
      return [{ path, detail, remedy: "Write a storeNamespace for one of them, which has not used the store yet" }]
    }
    if (optionsOf(brokers[store]).store === undefined) return []
    const remedy = `Remove store from brokers.${store}, or write the name of another broker`
    return [{ path, detail: `the store ${store} has a store`, remedy }]
  })

/** Returns the outboxes of each store as queues, so operators find it; a file can name it itself. */
const outboxes = ({ brokers }: ConfigFile, named: Linked["queues"]): Linked["queues"] => {
  const queues: Record<string, ConfiguredQueue> = {}
  for (const [name, broker] of Object.entries(brokers)) {
    const { store, storeNamespace } = optionsOf(broker)
    const outbox = Relay.queueOf(storeNamespace)
    const isKnown = Object.values(named).some((queue) => queue.broker === store && queue.name === outbox)
    if (store === undefined || isKnown) continue
    const isTaken = Object.hasOwn({ ...named, ...queues }, outbox)
    queues[isTaken ? `${outbox} on ${store}` : outbox] = {
      ...QueueDefinition.make(outbox, { codec: Codec.bytes }),
      broker: store,
      options: Relay.defaults,
      retryPath: ["brokers", name, "store"]
    }
  }
  return queues
}

/** Returns the problems of names that no broker or policy has. */
const missing = (file: ConfigFile, brokers: ReadonlyArray<string>): ReadonlyArray<StrictSchema.Problem> => {
  const problems: Array<StrictSchema.Problem> = []
  const lookUp = (
    what: "broker" | "policy",
    name: string,
    known: ReadonlyArray<string>,
    path: StrictSchema.Problem["path"]
  ) => {
    if (known.includes(name)) return
    const isFirst = known.length === 0
    const problem = unknown(what, name, known)
    const remedy = isFirst ? `Write the ${what} under ${what === "broker" ? "brokers" : "policies"}` : problem.remedy
    problems.push({ path, ...problem, remedy })
  }
  if (file.broker !== undefined) lookUp("broker", file.broker, brokers, ["broker"])
  for (const [name, broker] of Object.entries(file.brokers)) {
    const { inboxRetention, store, storeNamespace } = optionsOf(broker)
    if (store !== undefined) {
      lookUp("broker", store, brokers, ["brokers", name, "store"])
      continue
    }
    for (const [option, value] of Object.entries({ inboxRetention, storeNamespace })) {
      const detail = "without store, this option has no effect"
      const remedy = "Write it next to store, or remove it"
      if (value !== undefined) problems.push({ path: ["brokers", name, option], detail, remedy })
    }
  }
  for (const [key, { broker, retry }] of Object.entries(file.queues ?? {})) {
    if (broker !== undefined) lookUp("broker", broker, brokers, ["queues", key, "broker"])
    else if (file.broker === undefined && brokers.length !== 1) {
      const remedy = `Write broker: and one of ${brokers.map(BrokerUrl.withoutPassword).join(", ")}, for this queue or at the top of the file`
      problems.push({
        path: ["queues", key, "broker"],
        detail: "the queue has no broker, and the file sets no default broker",
        remedy
      })
    }
    if (typeof retry === "string") {
      lookUp("policy", retry, Object.keys(file.policies ?? {}), ["queues", key, "retry"])
    }
  }
  return problems
}

/**
 * Returns the problems of keys that name the same queue of a broker with different retry policies: chance would decide
 * which policy applies.
 */
const contradictions = (queues: Linked["queues"]): ReadonlyArray<StrictSchema.Problem> => {
  const all = Object.entries(queues)
  return all.flatMap(([key, queue], index) => {
    const policy = (other: ConfiguredQueue) => JSON.stringify(other.options.retry ?? RetryPolicy.make())
    const first = all
      .slice(0, index)
      .find(([, each]) => each.name === queue.name && each.broker === queue.broker && policy(each) !== policy(queue))
    if (first === undefined) return []
    const detail = `${first[0]} and ${key} are both the queue ${queue.name} on ${queue.broker}, with different retry policies`
    return [
      {
        path: ["queues", key, "name"],
        detail,
        remedy: "Set the same retry for both queues, or another name for one queue"
      }
    ]
  })
}

const backoffOf = (written: Written["consumerBackoff"]): ConsumerBackoff.ConsumerBackoff | undefined =>
  typeof written === "object" ? written : written === true ? ConsumerBackoff.make() : undefined

const queueOf = (key: string, written: Written, file: ConfigFile, defaultBroker: string): ConfiguredQueue => {
  const { broker = defaultBroker, codec = "json", consumerBackoff, delay, name = key, retry, ...rest } = written
  const options: ConsumerOptions.Options = {
    ...rest,
    retry: typeof retry === "string" ? file.policies?.[retry] : retry,
    consumerBackoff: backoffOf(consumerBackoff)
  }
  // Checks the options: a bad one is an error of the file, not of a consumer.
  ConsumerOptions.resolve(options)
  return {
    ...QueueDefinition.make(name, { codec: codecs[codec], delay }),
    broker,
    options,
    retryPath: typeof retry === "string" ? ["policies", retry] : ["queues", key, "retry"]
  }
}

/** Links a file. Fails with all problems. */
export const link = (file: ConfigFile): Result.Result<Linked, ReadonlyArray<StrictSchema.Problem>> => {
  const brokers = Object.keys(file.brokers)
  const absent = [...missing(file, brokers), ...wrongStores(file)]
  const defaultBroker = file.broker ?? (brokers.length === 1 ? brokers[0] : undefined)
  const queues: Record<string, ConfiguredQueue> = {}
  const problems = [...absent]
  for (const [key, written] of Object.entries(file.queues ?? {})) {
    try {
      queues[key] = queueOf(key, written, file, defaultBroker ?? "")
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      const { path, ...refusal } = StrictSchema.refusal(error, written)
      problems.push({ ...refusal, path: ["queues", key, ...path] })
    }
  }
  problems.push(...contradictions(queues))
  if (problems.length > 0) return Result.fail(problems)
  Object.assign(queues, outboxes(file, queues))
  const queuesOn = (broker: string): ReadonlyArray<ConfiguredQueue> => {
    const own = Object.values(queues).filter((queue) => queue.broker === broker)
    if (own.length > 0 || !brokers.includes(broker)) return own
    return Object.entries(queues).flatMap(([key, queue]) =>
      file.queues?.[key]?.broker === undefined ? [{ ...queue, broker }] : []
    )
  }
  return Result.succeed({ defaultBroker, policies: file.policies ?? {}, queues, queuesOn })
}
