/** The route of each message by its plan, and the objects that the route needs. */
import { BrokerError, type Outgoing } from "@requeue/core/adapter-kit"
import type { Settings } from "../../RabbitMqOptions.ts"
import type * as Plan from "../../RabbitMqPlan.ts"
import type { Properties, Publication } from "../client.ts"
import { keyOf, type NativeObject } from "../declare/objects.ts"
import * as Names from "../names.ts"
import { ofEncoding } from "../toBrokerError.ts"
import * as Wire from "../wire.ts"
import { direct, toPublication } from "./toPublication.ts"

/** A message, the plan of its queue, and the properties of the delivery that it is a copy of. */
export interface Item {
  readonly message: Outgoing.Outgoing
  readonly plan: Plan.Plan
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
  /** The objects that must exist first: the same arrays for the same queue and delay. */
  readonly needs: (item: Item) => ReadonlyArray<ReadonlyArray<NativeObject>>
  /** The AMQP message, for an item that was sent at `started`, in monotonic milliseconds; or why there can be none. */
  readonly publication: (item: Item, started: number) => Publication | BrokerError.BrokerError
}

const tooLong = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Unsupported",
    detail: `the name has ${Buffer.byteLength(queue)} bytes, AMQP carries at most ${Names.limit}`,
    remedy: "Use a shorter name"
  })

const tooLarge = ({ body, queue }: Outgoing.Outgoing, limit: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "BodyTooLarge",
    detail: `the body has ${body.length} bytes, the limit is ${limit}`,
    remedy: "Send a smaller body, or raise max_message_size of the server and maxBodySize here"
  })

/** The routes of a broker with these settings. */
export const make = (env: {
  readonly settings: Settings
  readonly maxBodySize: number
  readonly uniqueName: () => string
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}): Routes => {
  const { maxBodySize, settings } = env
  const own = Names.own(settings)

  /** The delay without the time that declaring took. */
  const remaining = (delay: number, started: number): number => {
    const spent = Math.floor(env.elapsed() - started)
    return spent < settings.resolution ? delay : Math.max(1, delay - spent)
  }

  /** The route of what is left of a delay, where that needs nothing that is not declared; else of the whole delay. */
  const delayed = ({ route }: Plan.Plan, delay: number, started: number) => {
    const whole = route(delay)
    const rest = route(remaining(delay, started))
    if (rest.objects === whole.objects) return rest
    const declared = new Set(whole.objects.map(keyOf))
    return rest.objects.every((object) => declared.has(keyOf(object))) ? rest : whole
  }

  return {
    refusal: ({ message, original }) => {
      if (Buffer.byteLength(message.queue) > Names.limit) return tooLong(message.queue)
      // A copy has no limit: the server has taken its original.
      return original === undefined && message.body.length > maxBodySize ? tooLarge(message, maxBodySize) : undefined
    },
    name: ({ message: { delay, queue }, plan }) => (delay > 0 ? `${plan.route(delay).exchange} ${queue}` : ` ${queue}`),
    needs: ({ message, plan }) => {
      // A message goes to the plan's queue, or to one of its dead-letter queues.
      const home = plan.homes.get(message.queue) ?? plan.objects
      return message.delay > 0 ? [home, plan.route(message.delay).objects] : [home]
    },
    publication: ({ message, original, plan, returns }, started) => {
      const route = message.delay > 0 ? delayed(plan, message.delay, started) : direct(message.queue)
      // It keeps the name of the message whose place it takes, by which the core knows that one.
      const kept = returns === undefined ? undefined : original?.headers?.[Wire.copyHeader]
      const copy = typeof kept === "string" ? kept : env.uniqueName()
      try {
        return toPublication(message, route, { copy, own, returns }, original)
      } catch (error) {
        return ofEncoding(error, message.queue)
      }
    }
  }
}
