/**
 * Plans a queue: the exchanges, queues, bindings and arguments that it and its retry policy need, as data.
 *
 * Pure. The adapter declares exactly the objects of the plan, and `format` prints them. So you can review, compare and test
 * a plan without a broker. The name of an object contains everything that cannot change later: version of the layout, queue
 * type, TTL. So a changed policy adds objects and never causes PRECONDITION_FAILED. The arguments of a work queue do not
 * depend on the policy.
 */
import { ConfigurationError, Delay, type RetryPolicy } from "@requeue/core/port"
import * as Former from "./internal/declare/legacyArguments.ts"
import type { NativeBinding, NativeExchange, NativeObject, NativeQueue } from "./internal/declare/objects.ts"
import * as Objects from "./internal/declare/objects.ts"
import * as Topologies from "./internal/declare/topologies/index.ts"
import { hasDelays, type Route, type Topology, tooMany } from "./internal/declare/topologies/topology.ts"
import { queueProblemOf } from "./internal/nameRules.ts"
import * as Names from "./internal/names.ts"
import * as Version from "./internal/version.ts"
import { type Settings, typeOf } from "./RabbitMqOptions.ts"
import * as RabbitMqQueue from "./RabbitMqQueue.ts"

export type { NativeBinding, NativeExchange, NativeObject, NativeQueue, Route }

/** The oldest server whose quorum queues have TTL and at-least-once dead-lettering. */
export const oldestServer = "3.10"

/** The plan of a queue: the objects that the queue needs on the server, and the routes that its delayed messages take. */
export interface Plan {
  readonly queue: string
  /** The name of the topology that keeps the delays. */
  readonly topology: string
  /** The objects that must exist before the first delivery, in the order in which they are declared. */
  readonly objects: ReadonlyArray<NativeObject>
  /**
   * For this queue and for each of its dead-letter queues: the objects that must exist before a message is sent to that
   * queue.
   */
  readonly homes: ReadonlyMap<string, ReadonlyArray<NativeObject>>
  /**
   * The objects for delays that are not in the policy. The adapter declares them before the first message that needs them.
   */
  readonly onDemand: ReadonlyArray<NativeObject>
  /** Describes the objects that delays outside the policy may add; `undefined` if they add none. */
  readonly growth: string | undefined
  /** The worst lateness of the policy's delays, in words; `undefined` if it is small. */
  readonly lateness: string | undefined
  /** Notes for people, such as on head-of-line blocking. */
  readonly notes: ReadonlyArray<string>
  /** The route of a message that must not arrive before `delay` milliseconds (> 0) have passed. */
  readonly route: (delay: number) => Route
  /**
   * Returns for how many milliseconds the queue itself delays a message at its `count`th counted return; `undefined` if it
   * does not delay.
   */
  readonly native: ((count: number) => number) | undefined
  /** The queue as it exists: its type and the limits that the server enforces. */
  readonly found: RabbitMqQueue.RabbitMqQueue
  /** The queue whose messages circulate until they are due; `undefined` in most topologies. */
  readonly waiting: string | undefined
  /** The remedy if the queue is missing and only its consumer may declare it. */
  readonly absent: string | undefined
}

/** The queue to plan. */
export interface Request {
  readonly queue: string
  /** The retry policy of the queue's consumer. Default: none, because producers know no policy. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /** The dead-letter queues of the queue. The first one also receives the server's dead letters. Default: none. */
  readonly deadLetterQueues?: ReadonlyArray<string> | undefined
  /** The queue as found on the server. Default: the queue as the options describe it. */
  readonly found?: RabbitMqQueue.RabbitMqQueue | undefined
}

/** Returns a work queue or dead-letter queue, with its arguments. */
export const queue = (name: string, settings: Settings): NativeQueue => {
  const own = settings.queues[name]
  const args =
    typeOf(name, settings) === "quorum"
      ? {
          "x-queue-type": "quorum",
          "x-delivery-limit": own?.deliveryLimit ?? settings.deliveryLimit,
          "x-dead-letter-exchange": Names.dead(settings),
          "x-dead-letter-routing-key": name,
          "x-dead-letter-strategy": "at-least-once",
          "x-overflow": "reject-publish"
        }
      : {
          // Without this argument, the virtual host's default decides.
          "x-queue-type": "classic",
          "x-dead-letter-exchange": Names.dead(settings),
          "x-dead-letter-routing-key": name
        }
  const planned = Objects.queue(name, { ...args, ...own?.arguments }, RabbitMqQueue.assertOf(name, settings))
  return own?.exclusive === true ? { ...planned, exclusive: true } : planned
}

/** Returns a queue as the options describe it. It does not ask the server. */
export const assumed = (name: string, settings: Settings): RabbitMqQueue.RabbitMqQueue =>
  RabbitMqQueue.ofOptions(name, queue(name, settings).arguments, settings)

/** Returns an exchange that the options define; nothing if the options only name it. */
const exchangeOf = (name: string, settings: Settings): ReadonlyArray<NativeExchange> => {
  const own = settings.exchanges[name]
  return own === undefined
    ? []
    : [
        {
          _tag: "Exchange",
          name,
          type: own.type,
          arguments: own.arguments ?? {},
          assert: own.assert ?? settings.assert
        }
      ]
}

/**
 * Returns a queue and its bindings. If the adapter declares the queue, the exchanges for its delayed messages and for the
 * server's dead letters are included.
 */
export const home = (name: string, settings: Settings): ReadonlyArray<NativeObject> => {
  const assert = RabbitMqQueue.assertOf(name, settings)
  const bindings = (settings.queues[name]?.bindings ?? []).flatMap(
    ({ arguments: args = {}, exchange, routingKey = "" }) => [
      ...exchangeOf(exchange, settings),
      Objects.binding(exchange, name, routingKey, args, assert)
    ]
  )
  return assert === "declare"
    ? [
        ...Objects.safetyNet(settings),
        queue(name, settings),
        Objects.binding(Names.deliver(settings), name, name),
        ...bindings
      ]
    : [queue(name, settings), ...bindings]
}

/**
 * Returns the exchange for the server's dead letters of a declared queue. It has the prefix under which the queue was made.
 */
const lettersOf = ({ arguments: args }: RabbitMqQueue.RabbitMqQueue, settings: Settings): string => {
  const exchange = args["x-dead-letter-exchange"]
  return typeof exchange === "string" && Names.isDead(exchange) ? exchange : Names.dead(settings)
}

/** Returns the exchange of {@link lettersOf} with its alternate exchange, if it belongs to a former prefix. */
const formerLetters = (found: RabbitMqQueue.RabbitMqQueue, settings: Settings): ReadonlyArray<NativeObject> => {
  const letters = lettersOf(found, settings)
  const behind = Names.undeliveredOf(letters)
  return letters === Names.dead(settings)
    ? []
    : [Objects.exchange(behind, "fanout"), Objects.exchange(letters, "direct", behind)]
}

/** Describes the objects that delays outside the policy may add, and when; `undefined` if they add none. */
const growthOf = (
  onDemand: ReadonlyArray<NativeObject>,
  { isUnbounded = false }: Topology,
  settings: Settings
): string | undefined => {
  const when = "when a handler or producer asks for a delay outside the policy"
  if (isUnbounded) return `and 1 more queue for each further delay, ${when}; maxOtherDelayQueues sets a limit`
  if (onDemand.length === 0) return undefined
  const isLevel = /^\d+\.\d+$/
  const start = Names.levels(settings)
  const isShared = onDemand.every((object) => {
    const name = object._tag === "Binding" ? object.queue : object.name
    return name.startsWith(start) && isLevel.test(name.slice(start.length))
  })
  return `and up to ${Objects.counted(onDemand)}${isShared ? ", which all queues share," : ""} ${when}`
}

/**
 * Returns the error for a name that no queue can have, or that the server would change; `undefined` for a valid name.
 */
const unfit = (field: string, name: string): ConfigurationError.ConfigurationError | undefined => {
  const problem = queueProblemOf(name)
  return problem === undefined
    ? undefined
    : new ConfigurationError.ConfigurationError({ field, queue: name, broker: "rabbitmq", ...problem })
}

/**
 * Plans a queue for a server of this version, for example `4.3.6`.
 *
 * Returns a `ConfigurationError` if the server is too old, if the topology cannot keep the policy's delays with `maxDelayQueues`
 * queues, or if the queue's delivery limit is too small for the policy.
 *
 * @example
 * ```ts
 * import { RabbitMqOptions, RabbitMqPlan } from "@requeue/adapter-rabbitmq"
 * import * as Result from "effect/Result"
 *
 * const settings = Result.getOrThrow(RabbitMqOptions.decode({ topology: "levels" }))
 * const plan = RabbitMqPlan.make({ queue: "orders" }, settings, "4.3.6")
 * "route" in plan && plan.route(70).kept // => 100
 * ```
 */
export const make = (
  { deadLetterQueues = [], found: told, queue: name, retry }: Request,
  settings: Settings,
  serverVersion: string
): Plan | ConfigurationError.ConfigurationError => {
  const found = told ?? assumed(name, settings)
  const refusal =
    unfit("queue", name) ??
    deadLetterQueues.flatMap((one) => unfit("retry.deadLetter", one) ?? [])[0] ??
    Version.refusal(serverVersion) ??
    RabbitMqQueue.refusal(found, retry, settings)
  if (refusal !== undefined) return refusal
  const topology = Topologies.choose({ queue: name, retry, found, settings, serverVersion })
  if (topology instanceof ConfigurationError.ConfigurationError) return topology
  const [first] = deadLetterQueues
  // The server's dead letters, from the delivery limit, go where those of the policy go.
  const isBound = found.isOurs && first !== undefined && RabbitMqQueue.assertOf(first, settings) === "declare"
  // Delays outside the policy may never occur. The consumer reads a waiting queue from the start.
  const isNeeded = hasDelays(retry) || topology.waiting !== undefined
  const planned = assumed(name, settings).arguments
  const kept = found.isOurs ? Former.kept(found.arguments, planned) : []
  const { amend = (object) => object } = topology
  const delays = isNeeded ? Objects.distinct(topology.objects).filter(Objects.isDelay).length : 0
  const { maxDelayQueues = Number.POSITIVE_INFINITY } = settings
  if (delays > maxDelayQueues) return tooMany(name, maxDelayQueues, delays)
  const homes = new Map([name, ...deadLetterQueues].map((one) => [one, home(one, settings).map(amend)]))
  const objects = [
    ...[...homes.values()].flat(),
    ...(isBound ? [...formerLetters(found, settings), Objects.binding(lettersOf(found, settings), first, name)] : []),
    ...(isNeeded ? topology.objects : [])
  ]
  const unknown = found.type === "unknown" ? ["immediate retries are copies, because the queue's type is unknown"] : []
  const onDemand = (): ReadonlyArray<NativeObject> =>
    Objects.without((topology.others ?? topology.route(Delay.max).objects).map(amend), objects)
  return {
    queue: name,
    topology: topology.name,
    objects: Objects.distinct(objects),
    homes,
    // Lazy, because there are many, and producers never read them.
    get onDemand() {
      return onDemand()
    },
    get growth() {
      return growthOf(onDemand(), topology, settings)
    },
    lateness: isNeeded ? topology.lateness : undefined,
    notes: [
      ...topology.notes,
      ...(settings.queues[name]?.exclusive === true ? [`queue ${name} and its messages end with its connection`] : []),
      ...(found.isOurs ? [] : [`queue ${name} is used as it is: ${RabbitMqQueue.describe(found)}`, ...unknown]),
      ...(kept.length === 0 ? [] : [`queue ${name} keeps ${kept.join(", ")} from when it was made`]),
      ...RabbitMqQueue.remarks(found),
      ...RabbitMqQueue.warnings(found)
    ],
    route: topology.route,
    native: topology.native ?? RabbitMqQueue.delays(found, serverVersion),
    found,
    waiting: topology.waiting,
    absent: topology.absent
  }
}

/**
 * Returns the queues that are bound to an exchange, with the objects that a producer declares for them. Exclusive queues
 * are left out, and so are queues that the topology leaves to their consumers.
 */
const boundTo = (exchange: string, settings: Settings, serverVersion: string): ReadonlyArray<NativeObject> =>
  Object.entries(settings.queues).flatMap(([name, { bindings = [], exclusive }]) => {
    if (exclusive === true || bindings.every((one) => one.exchange !== exchange)) return []
    const plan = make({ queue: name }, settings, serverVersion)
    const objects = ("homes" in plan && plan.homes.get(name)) || []
    return objects.some((one) => one._tag === "Queue" && one.name === name && one.assert === "declare") ? objects : []
  })

/**
 * Returns the exchange that a message is published to, with the queues that are bound to it. An exchange that the options
 * do not define must exist. The adapter checks that once, because publishing to a missing exchange closes the channel. The
 * default exchange always exists.
 */
export const target = (name: string, settings: Settings, serverVersion: string): ReadonlyArray<NativeObject> => {
  const own = exchangeOf(name, settings)
  if (own.some(({ assert }) => assert === "declare"))
    return Objects.distinct([...own, ...boundTo(name, settings, serverVersion)])
  return own.length > 0 || name === "" || settings.assert === "never"
    ? own
    : [Objects.exchange(name, "", undefined, "passive")]
}

/** Formats the plan as a table for people. */
export const format = ({ growth, notes, objects, queue: name, topology }: Plan): string => {
  const rows = [["object", "name", "details"], ...objects.map(Objects.describe)]
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]!.length)))
  const table = rows.map((row) =>
    row
      .map((cell, column) => (column < 2 ? cell.padEnd(widths[column]!) : cell))
      .join("  ")
      .trimEnd()
  )
  return [
    `queue ${name}, topology ${topology}: ${Objects.counted(objects)}${growth === undefined ? "" : `, ${growth}`}`,
    ...table,
    ...notes.map((note) => `note: ${note}`)
  ].join("\n")
}
