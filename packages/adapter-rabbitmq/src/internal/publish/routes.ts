/** The route of each message by its plan, and the objects that the route needs. */
import { BoundedMap, BrokerError, type Message, type Outgoing } from "@requeue/core/port"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as Plan from "../../RabbitMqPlan.ts"
import type { Properties, Publication } from "../client.ts"
import { keyOf, type NativeObject } from "../declare/objects.ts"
import * as NameRules from "../nameRules.ts"
import * as Names from "../names.ts"
import * as Native from "../native.ts"
import { ofEncoding } from "../toBrokerError.ts"
import * as Version from "../version.ts"
import * as Wire from "../wire.ts"
import * as FirstSend from "./firstSend.ts"
import { direct, toPublication } from "./toPublication.ts"

/** The part of a plan that sending needs. */
export type Way = Pick<Plan.Plan, "queue" | "objects" | "homes" | "route" | "absent">

/** A message, the plan of its queue, and the properties of the delivery that it is a copy of. */
export interface Item {
  readonly message: Outgoing.Outgoing
  readonly plan: Way
  readonly original?: Properties | undefined
  /** The returns of the original, for a message that replaces it in its queue. Default: the message replaces none. */
  readonly returns?: number | undefined
}

/** How messages get to their queues. */
export interface Routes {
  /** The error for a message that cannot be sent at all. */
  readonly refusal: (item: Item) => BrokerError.BrokerError | undefined
  /** Names the route. Messages of the same name need the same objects. */
  readonly name: (item: Item) => string
  /** Whether a message goes to its queue alone. Of several queues after an exchange, some may have accepted what one refused. */
  readonly isStraight: (item: Item) => boolean
  /** The names under which a message shares the refusals of others: its route, and its part of an exchange. */
  readonly parts: (item: Item) => ReadonlyArray<string>
  /** The name that an error applies to; `undefined` if it does not apply to other messages. */
  readonly refused: (item: Item, error: BrokerError.BrokerError) => string | undefined
  /** The objects that must exist first. The same queue and delay return the same arrays. */
  readonly needs: (item: Item) => ReadonlyArray<ReadonlyArray<NativeObject>>
  /** The AMQP message of an item that was sent at `started`, in monotonic milliseconds, or its error. */
  readonly publication: (item: Item, started: number) => Publication | BrokerError.BrokerError
}

const tooLarge = ({ body, queue }: Outgoing.Outgoing, limit: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "BodyTooLarge",
    detail: `the body has ${body.length} bytes, the limit is ${limit}`,
    remedy: "Send a smaller body, or raise max_message_size of the server and maxBodySize here"
  })

const unsupported = (queue: string, detail: string, remedy?: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Unsupported",
    detail,
    remedy
  })

const queueRemedy = "Send it without a delay, or to a queue that is bound to the exchange"
const either = "Remove one of them"
const copiesRemedy = "Give the header another name, and send the message to each of these queues"

/** The native options of a message that {@link Routes.refusal} accepted. */
const nativeOptions = (native: Message.Native | undefined): Native.Options => {
  const asked = Native.nativeOptions.of(native)
  return asked === undefined || asked instanceof RangeError ? {} : asked
}

/** The route to the exchange that the program has chosen; `undefined` if it chose none. */
const toExchange = (native: Message.Native | undefined, queue: string): ReturnType<typeof direct> | undefined => {
  const { exchange, routingKey = queue } = nativeOptions(native)
  return exchange === undefined ? undefined : { ...direct(routingKey), exchange }
}

/**
 * The native options of a message for this server. Before 4.3, a server may return a reply to a direct reply-to name although the
 * requester received it. There, a reply counts as sent once the server has accepted it.
 */
const optionsOn = (native: Message.Native | undefined, serverVersion: string): Native.Options => {
  const asked = nativeOptions(native)
  const isReply = asked.exchange === "" && NameRules.isDirectReply(asked.routingKey ?? "")
  return isReply && !Version.isAtLeast(serverVersion, "4.3") ? { ...asked, mandatory: false } : asked
}

/** The messages of an exchange that have the same routing key. */
const partOf = ({ exchange, routingKey }: ReturnType<typeof direct>): string => `${exchange} ${routingKey}`

/** Whether a permission is missing for a routing key alone. https://www.rabbitmq.com/docs/access-control#topic-authorisation */
const isOfTopic = ({ detail, reason }: BrokerError.BrokerError): boolean =>
  reason === "AccessRefused" && detail.includes("access to topic")

/** The number of exchanges whose objects are remembered. */
const exchangeLimit = 1000

/** The error for a message that cannot be sent at all. */
const refusalOf = ({ message, original }: Item, maxBodySize: number): BrokerError.BrokerError | undefined => {
  const asked = Native.nativeOptions.of(message.native)
  if (asked instanceof RangeError) return unsupported(message.queue, asked.message)
  if (message.delay > 0 && asked !== undefined) {
    const { exchange, expiration } = asked
    if (exchange !== undefined)
      return unsupported(message.queue, "a message to an exchange cannot have a delay", queueRemedy)
    if (expiration !== undefined)
      return unsupported(message.queue, "a message with an expiration cannot have a delay", either)
  }
  const copies = Wire.copiesHeader(message.headers)
  if (copies !== undefined)
    return unsupported(
      message.queue,
      `the server reads the header ${copies} as a list of further routing keys`,
      copiesRemedy
    )
  // A copy has no limit, because the server accepted its original.
  return original === undefined && message.body.length > maxBodySize ? tooLarge(message, maxBodySize) : undefined
}

/** The routes of a broker with these settings. */
// Long, because its functions share what they have declared.
export const make = (env: {
  readonly settings: Settings
  readonly maxBodySize: number
  readonly serverVersion: () => string
  readonly uniqueName: () => string
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}): Routes => {
  const { maxBodySize, settings } = env
  const firstSend = FirstSend.make()

  /** The delay without the time that declaring took. */
  const remaining = (delay: number, started: number): number => {
    const spent = Math.floor(env.elapsed() - started)
    return spent < settings.resolution ? delay : Math.max(1, delay - spent)
  }

  /** The route of the rest of a delay, if its objects are declared; else the route of the whole delay. */
  const delayed = ({ route }: Way, delay: number, started: number) => {
    const whole = route(delay)
    const rest = route(remaining(delay, started))
    if (rest.objects === whole.objects) return rest
    const declared = new Set(whole.objects.map(keyOf))
    return rest.objects.every((object) => declared.has(keyOf(object))) ? rest : whole
  }

  /** The objects of the exchanges that were used last. */
  const exchanges = BoundedMap.make<ReadonlyArray<NativeObject>>(exchangeLimit)
  const objectsOf = (exchange: string): ReadonlyArray<NativeObject> => {
    const known = exchanges.get(exchange) ?? Plan.target(exchange, settings, env.serverVersion())
    exchanges.set(exchange, known)
    return known
  }

  const name: Routes["name"] = ({ message: { delay, native, queue }, plan }) => {
    if (delay === 0) return toExchange(native, queue)?.exchange ?? ` ${queue}`
    // Several delays of a queue may use the default exchange, each with another queue.
    const { exchange, routingKey } = plan.route(delay)
    return `${exchange} ${routingKey} ${queue}`
  }

  return {
    refusal: (item) => refusalOf(item, maxBodySize),
    name,
    isStraight: ({ message: { native, queue } }) => toExchange(native, queue) === undefined,
    parts: (item) => {
      const own = toExchange(item.message.native, item.message.queue)
      return own === undefined ? [name(item)] : [own.exchange, partOf(own)]
    },
    refused: (item, error) => {
      const own = toExchange(item.message.native, item.message.queue)
      if (own === undefined) return name(item)
      // Whether a message can be routed may depend on its headers too.
      if (error.reason === "Unroutable") return undefined
      return isOfTopic(error) ? partOf(own) : own.exchange
    },
    needs: ({ message, plan }) => {
      const own = toExchange(message.native, message.queue)
      if (own !== undefined) return [objectsOf(own.exchange)]
      // A message goes to the plan's queue, or to one of its dead-letter queues.
      const home = plan.homes.get(message.queue) ?? plan.objects
      return message.delay > 0 ? [home, plan.route(message.delay).objects] : [home]
    },
    publication: ({ message, original, plan, returns }, started) => {
      const { delay, native, queue } = message
      if (original === undefined && returns === undefined && FirstSend.isFirst(message))
        return firstSend(message, env.uniqueName())
      const route = toExchange(native, queue) ?? (delay > 0 ? delayed(plan, delay, started) : direct(queue))
      // The copy keeps the name of the message that it replaces, by which the core recognises that message.
      const kept = returns === undefined ? undefined : original?.headers?.[Wire.copyHeader]
      const copy = typeof kept === "string" ? kept : env.uniqueName()
      try {
        const names = { copy, isDelay: Names.isOfDelay(settings, plan.queue), returns }
        return toPublication(message, route, names, original, optionsOn(native, env.serverVersion()))
      } catch (error) {
        return ofEncoding(error, queue)
      }
    }
  }
}
