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

/** The part of a plan that messages are sent by. */
export type Way = Pick<Plan.Plan, "objects" | "homes" | "route" | "absent">

/** A message, the plan of its queue, and the properties of the delivery that it is a copy of. */
export interface Item {
  readonly message: Outgoing.Outgoing
  readonly plan: Way
  readonly original?: Properties | undefined
  /** The returns of the original, for a message that takes its place in its queue. Default: it is another one's copy. */
  readonly returns?: number | undefined
}

/** How messages get to their queues. */
export interface Routes {
  /** The error of a message that cannot be sent at all. */
  readonly refusal: (item: Item) => BrokerError.BrokerError | undefined
  /** Names the route: messages of the same name need the same objects. */
  readonly name: (item: Item) => string
  /** Whether a message goes to its queue alone: others behind an exchange may have what one of them has refused. */
  readonly isStraight: (item: Item) => boolean
  /** The names by which a message is refused, when others have been: its route, and its part of an exchange. */
  readonly parts: (item: Item) => ReadonlyArray<string>
  /** The one of them that an error is about; `undefined` where it says nothing of other messages. */
  readonly refused: (item: Item, error: BrokerError.BrokerError) => string | undefined
  /** The objects that must exist first: the same arrays for the same queue and delay. */
  readonly needs: (item: Item) => ReadonlyArray<ReadonlyArray<NativeObject>>
  /** The AMQP message, for an item that was sent at `started`, in monotonic milliseconds; or why there can be none. */
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
const either = "Leave one of them out"
const copiesRemedy = "Give the header another name, and send the message to each queue that is to have it"

/** The wishes of a message that {@link Routes.refusal} has passed. */
const nativeOptions = (native: Message.Native | undefined): Native.Options => {
  const asked = Native.nativeOptions.of(native)
  return asked === undefined || asked instanceof RangeError ? {} : asked
}

/** The route to the exchange that the program has asked for; `undefined` where it has asked for none. */
const toExchange = (native: Message.Native | undefined, queue: string): ReturnType<typeof direct> | undefined => {
  const { exchange, routingKey = queue } = nativeOptions(native)
  return exchange === undefined ? undefined : { ...direct(routingKey), exchange }
}

/**
 * The wishes of a message for this server. One before 4.3 may return an answer to such a name although the requester has got it: there,
 * as the requester is the only one who knows, an answer counts as sent when the server has taken it.
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

/** Exchanges of which it is remembered what they need. */
const exchangeLimit = 1000

/** The error of a message that cannot be sent at all. */
const refusalOf = ({ message, original }: Item, maxBodySize: number): BrokerError.BrokerError | undefined => {
  const asked = Native.nativeOptions.of(message.native)
  if (asked instanceof RangeError) return unsupported(message.queue, asked.message)
  if (message.delay > 0 && asked !== undefined) {
    const { exchange, expiration } = asked
    if (exchange !== undefined)
      return unsupported(message.queue, "a message for an exchange takes no delay", queueRemedy)
    if (expiration !== undefined)
      return unsupported(message.queue, "a message with an expiration takes no delay", either)
  }
  const copies = Wire.copiesHeader(message.headers)
  if (copies !== undefined)
    return unsupported(
      message.queue,
      `the server takes the header ${copies} for a list of more routing keys`,
      copiesRemedy
    )
  // A copy has no limit: the server has taken its original.
  return original === undefined && message.body.length > maxBodySize ? tooLarge(message, maxBodySize) : undefined
}

/** The routes of a broker with these settings. */
export const make = (env: {
  readonly settings: Settings
  readonly maxBodySize: number
  readonly serverVersion: () => string
  readonly uniqueName: () => string
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}): Routes => {
  const { maxBodySize, settings } = env
  const own = Names.own(settings)
  const firstSend = FirstSend.make()

  /** The delay without the time that declaring took. */
  const remaining = (delay: number, started: number): number => {
    const spent = Math.floor(env.elapsed() - started)
    return spent < settings.resolution ? delay : Math.max(1, delay - spent)
  }

  /** The route of what is left of a delay, where that needs nothing that is not declared; else of the whole delay. */
  const delayed = ({ route }: Way, delay: number, started: number) => {
    const whole = route(delay)
    const rest = route(remaining(delay, started))
    if (rest.objects === whole.objects) return rest
    const declared = new Set(whole.objects.map(keyOf))
    return rest.objects.every((object) => declared.has(keyOf(object))) ? rest : whole
  }

  /** By exchange, as many as messages have gone to last. */
  const exchanges = BoundedMap.make<ReadonlyArray<NativeObject>>(exchangeLimit)
  const objectsOf = (exchange: string): ReadonlyArray<NativeObject> => {
    const known = exchanges.get(exchange) ?? Plan.target(exchange, settings, env.serverVersion())
    exchanges.set(exchange, known)
    return known
  }

  const name: Routes["name"] = ({ message: { delay, native, queue }, plan }) => {
    if (delay === 0) return toExchange(native, queue)?.exchange ?? ` ${queue}`
    // Several delays of a queue may begin in the default exchange, each in a queue of its own.
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
      // Whether it leads somewhere may depend on more than the routing key, such as headers.
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
      // It keeps the name of the message whose place it takes, by which the core knows that one.
      const kept = returns === undefined ? undefined : original?.headers?.[Wire.copyHeader]
      const copy = typeof kept === "string" ? kept : env.uniqueName()
      try {
        return toPublication(message, route, { copy, own, returns }, original, optionsOn(native, env.serverVersion()))
      } catch (error) {
        return ofEncoding(error, queue)
      }
    }
  }
}
