/** The network between a process and RabbitMQ, with the world's faults. */
import type { Sent } from "../servers/rabbitmq/Faults.ts"
import type * as Network from "../servers/rabbitmq/Network.ts"
import type { Machine } from "../world/Machine.ts"
import * as Wire from "../world/Wire.ts"
import type { World } from "../world/World.ts"

/** Maximum milliseconds of a stall: two missed heartbeats would end the connection. */
const longest = 15_000

/** How often a fault may happen at a frame that only sets a connection up: they are many, and none has a message. */
const setup = 0.1

const isTraffic = ({ name }: Sent): boolean => name === "publish" || name === "settle" || name === "consume"

/** Carries frames in one direction. They wait, in order, while it is stalled. */
const stalling = ({ at, draw, fault, now }: World, place: string, carry: Carry): Carry => {
  let until = 0
  let waiting = 0
  return (frame, isExposed) => {
    if (isExposed && fault("late", place)) until = Math.max(until, now() + draw.between(`${place} late`, 0, longest))
    if (waiting === 0 && until <= now()) return carry(frame, isExposed)
    waiting++
    at(until, () => {
      waiting--
      carry(frame, isExposed)
    })
  }
}

type Frame = () => void
type Carry = (frame: Frame, isExposed: boolean) => void

/** The network of one process. */
export const make =
  (world: World, machine: Machine): Network.Network =>
  (role, ends) => {
    const place = `${machine.name} ${role}`
    const arrive = (frame: Frame): void => frame()
    const wire = Wire.open<Frame, Frame>(world, machine, place, {
      onUp: arrive,
      onDown: arrive,
      onLost: ends.server,
      onBroken: ends.client
    })
    const up = stalling(world, `${place} up`, wire.up)
    const down = stalling(world, `${place} down`, wire.down)
    return {
      up: (sent, run) => {
        if (machine.isAlive()) up(run, isTraffic(sent) || world.draw.chance(`${place} ${sent.name}`, setup))
      },
      down: (run, isAsked = false) => down(run, !isAsked),
      cut: () => wire.cut(true)
    }
  }
