/** Producers: with Requeue, and foreign ones. */
import { Broker, Codec, Producer, QueueDefinition } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { nameOf, queue, type Sending } from "../Scenario.ts"
import * as Machine from "../world/Machine.ts"
import type { Model } from "../world/Model.ts"
import { keyHeader } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import type { ServiceOf } from "./Population.ts"

/** The header that sets the group of a message. */
const groupHeader = "message-group-id"

/** Sends the scenario's messages. `bodyOf` makes their bodies; the result counts the sends in flight. */
export const send = (
  world: World,
  model: Pick<Model, "publish">,
  serviceOf: ServiceOf,
  bodyOf: (sending: Sending) => Uint8Array
): (() => number) => {
  const machine = Machine.make(world, "sender", Machine.trueClock)
  const service = Machine.once(machine, serviceOf(machine))
  const producer = Producer.make(QueueDefinition.make(nameOf(world.scenario, queue), { codec: Codec.bytes }))
  let underWay = 0

  const begin = (sending: Sending): void => {
    const { by, delay, group, header, id, key, metadata, share } = sending
    const isKey = world.scenario.kind === "sqlite"
    const headers = {
      [keyHeader]: String(key),
      ...(group === undefined || isKey ? {} : { [groupHeader]: group }),
      ...(header === undefined ? {} : { large: "x".repeat(header) })
    }
    const body = bodyOf(sending)
    let isCalled = false
    /** The program calls `send`: not before its broker is made, which may take a while. */
    const called = (): void => {
      if (isCalled) return
      isCalled = true
      world.record({ _tag: "Sending", key, id, queue, earliest: world.now() + delay })
    }
    if (by === "foreign") {
      called()
      const parcel = { body, headers: { ...headers, id }, metadata }
      return model.publish(queue, parcel, () => world.record({ _tag: "Sent", key }))
    }
    underWay++
    const made = Effect.flatMap(service, (broker) => {
      called()
      const sent = Effect.flatMap(producer, ({ send }) =>
        send(body, { id, delay, headers, key: isKey ? group : undefined, fairBy: share })
      )
      return Effect.provideService(sent, Broker.Broker, broker)
    })
    machine.run(made).addObserver((exit) => {
      underWay--
      called()
      if (Exit.isSuccess(exit)) return world.record({ _tag: "Sent", key })
      const error = Exit.findErrorOption(exit)
      world.record({ _tag: "NotSent", key, reason: error._tag === "Some" ? error.value._tag : "died" })
    })
  }

  for (const sending of world.scenario.sendings) world.after(sending.at, () => begin(sending))
  return () => underWay
}
