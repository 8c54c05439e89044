/** Finds out what a queue is before its first delivery. A queue that the adapter does not declare is only read. */
import { BrokerError, ConfigurationError, Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as RabbitMqQueue from "../../RabbitMqQueue.ts"
import type { Declarer } from "../declare/declare.ts"
import type { NativeObject } from "../declare/objects.ts"
import type { Management } from "./management.ts"
import * as Question from "./question.ts"

/** The broker's own, which all of its queues share. */
export interface Dependencies {
  readonly settings: Settings
  readonly declarer: Pick<Declarer, "onChannel" | "former">
  readonly management: Management | undefined
  readonly serverVersion: () => string
}

/** Checks that a queue exists; `unknown` if the user may not even check, as on 4.3.0 without the permission to configure. */
const isThere = ({ onChannel }: Pick<Declarer, "onChannel">, queue: string) =>
  onChannel("inspect", queue, (channel) => channel.checkQueue(queue)).pipe(
    Effect.as("there" as const),
    Effect.catchIf(
      ({ reason }) => reason === "AccessRefused",
      () => Effect.succeed("unknown" as const)
    )
  )

const missing = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "inspect",
    queue,
    reason: "QueueMissing",
    detail: "the queue does not exist, and its option assert does not let the adapter declare it",
    remedy: `Create the queue, or set queues["${queue}"].assert: "declare"`
  })

const told = ({ management, serverVersion }: Dependencies, queue: string, isOurs: boolean) =>
  management === undefined
    ? Effect.undefined
    : Effect.map(management.queue(queue), (info) => info && RabbitMqQueue.managed(queue, info, serverVersion(), isOurs))

/** A queue as the management interface reports it now; `undefined` without one, or if it does not respond. */
export const now = (env: Dependencies, queue: string): Effect.Effect<RabbitMqQueue.RabbitMqQueue | undefined> =>
  Effect.orElseSucceed(told(env, queue, RabbitMqQueue.assertOf(queue, env.settings) === "declare"), () => undefined)

/** Asks the management interface; `undefined` without one, or if it does not respond, because other sources remain. */
const byManagement = (env: Dependencies, queue: string, isOurs: boolean) =>
  env.management === undefined
    ? Effect.undefined
    : told(env, queue, isOurs).pipe(
        Effect.catch((error) =>
          Effect.as(
            Log.warning("the management interface does not describe a queue", { queue, errorMessage: error.message }),
            undefined
          )
        )
      )

/** A queue that the adapter does not declare. It must exist. Fails with `QueueMissing`, or with the reason why it cannot be used. */
const adopted = (env: Dependencies, queue: string) =>
  Effect.gen(function* () {
    yield* Effect.catchIf(
      isThere(env.declarer, queue),
      ({ reason }) => reason === "QueueMissing",
      () => Effect.fail(missing(queue))
    )
    const managed = yield* byManagement(env, queue, false)
    if (managed !== undefined) return managed
    const options = RabbitMqPlan.assumed(queue, env.settings)
    const asked = yield* Question.ask(env.declarer, queue)
    if (asked === undefined) return options
    // The server does not report the queue's limit or native delays; the options may.
    const { arguments: args, deliveryLimit = options.deliveryLimit } = asked
    return { ...asked, deliveryLimit, arguments: { ...options.arguments, ...args } }
  })

/** A queue that the adapter declares, with the arguments of former settings if it has them. */
const ours = ({ declarer, settings }: Dependencies, queue: string): RabbitMqQueue.RabbitMqQueue => {
  const former = declarer.former(queue)
  return former === undefined
    ? RabbitMqPlan.assumed(queue, settings)
    : RabbitMqQueue.ofOptions(queue, former.arguments, settings)
}

/** The queue of a plan. A declared queue is as declared, except for policies of the server. */
export const find = (
  env: Dependencies,
  queue: string
): Effect.Effect<RabbitMqQueue.RabbitMqQueue, BrokerError.BrokerError> =>
  RabbitMqQueue.assertOf(queue, env.settings) === "declare"
    ? Effect.map(byManagement(env, queue, true), (managed) => managed ?? ours(env, queue))
    : adopted(env, queue)

/** Warns of an adopted queue whose dead-letter exchange is missing: the server drops its dead letters silently. */
export const checkTarget = (
  { declarer }: Dependencies,
  { arguments: args, isOurs, name: queue }: RabbitMqQueue.RabbitMqQueue
): Effect.Effect<void, BrokerError.BrokerError> => {
  const exchange = args["x-dead-letter-exchange"]
  if (isOurs || typeof exchange !== "string" || exchange === "") return Effect.void
  const text =
    `queue ${queue}: messages that the server dead-letters are lost or stay invisible, because its ` +
    `x-dead-letter-exchange "${exchange}" does not exist. Create that exchange and bind a queue to it`
  return Effect.matchEffect(
    declarer.onChannel("inspect", queue, (channel) => channel.checkExchange(exchange)),
    {
      onSuccess: () => Effect.void,
      onFailure: (error) =>
        error.reason === "QueueMissing"
          ? Log.warning(text, { queue })
          : error.reason === "AccessRefused"
            ? Effect.void
            : Effect.fail(error)
    }
  )
}

/** Checks that the objects of a plan exist that the adapter does not declare, if the server reports it. */
export const checkObjects = (
  { declarer, management, settings }: Dependencies,
  { objects, queue }: RabbitMqPlan.Plan
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const foreign = objects.filter(({ assert }) => assert !== "declare")
    const absent: Array<string> = []
    for (const object of foreign) {
      if (object._tag === "Binding" || object.name === queue) continue
      const inspected = declarer.onChannel("inspect", object.name, (channel) =>
        object._tag === "Queue" ? channel.checkQueue(object.name) : channel.checkExchange(object.name)
      )
      const found = yield* Effect.result(inspected)
      if (found._tag === "Success" || found.failure.reason === "AccessRefused") continue
      const isTheirs = object._tag === "Exchange" && settings.exchanges[object.name] !== undefined
      if (found.failure.reason !== "QueueMissing" || isTheirs) return yield* found.failure
      absent.push(`${object._tag.toLowerCase()} ${object.name}`)
    }
    const unbound = yield* absentBindings(foreign, management)
    if (absent.length + unbound.length > 0)
      return yield* BrokerError.ofPlan("rabbitmq", incomplete(queue, absent, unbound, settings))
  })

const absentBindings = (objects: ReadonlyArray<NativeObject>, management: Management | undefined) =>
  Effect.gen(function* () {
    const wanted = objects.flatMap((object) => (object._tag === "Binding" ? [object] : []))
    if (management === undefined || wanted.length === 0) return []
    const there = yield* Effect.orElseSucceed(management.bindings, () => undefined)
    return wanted
      .filter(
        ({ key, queue, source }) =>
          there?.some((one) => one.key === key && one.queue === queue && one.source === source) === false
      )
      .map(({ queue, source }) => `binding ${source} -> ${queue}`)
  })

const listed = 3

const incomplete = (
  queue: string,
  absent: ReadonlyArray<string>,
  unbound: ReadonlyArray<string>,
  settings: Settings
) => {
  const all = [...absent, ...unbound]
  const some = all.slice(0, listed).join(", ")
  const more = all.length > listed ? ` and ${all.length - listed} more` : ""
  // The adapter makes neither the layout of another program nor bindings of a queue that it does not declare.
  const isTheirs = absent.length === 0 || settings.topology === "perMessageTtlShared"
  return new ConfigurationError.ConfigurationError({
    field: settings.assert === "declare" ? "queues" : "assert",
    queue,
    broker: "rabbitmq",
    detail: `the adapter does not declare these objects, and they do not exist: ${some}${more}`,
    remedy: isTheirs
      ? "Create them as that layout needs them"
      : `Create them once: run requeue create with assert: "declare" and queues["${queue}"].assert: "passive", ` +
        `as a user who may configure`
  })
}
