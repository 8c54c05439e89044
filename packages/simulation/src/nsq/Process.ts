/** The network as a process has it: nothing arrives once it is dead, and nothing while it stands still. */
import { type Caller, silence } from "../servers/nsq/Conditions.ts"
import type { Network } from "../servers/nsq/Network.ts"
import * as Host from "../world/Host.ts"
import type { Machine } from "../world/Machine.ts"
import type { World } from "../world/World.ts"
import type { Purposes } from "./Purposes.ts"

/** The probability that a process ends with its machine, which closes no connections. */
const machineEnds = 0.5

/** The network of a process. */
export const within = (world: World, machine: Machine, network: Network, { arrived, written }: Purposes): Network => {
  const { isAlive, monotonic, name, onFrozen, onKilled, perform } = machine
  const caller = ({ clientId, purpose }: Caller): Caller => ({
    clientId,
    purpose: `${name} ${purpose}`
  })
  return {
    ...network,
    // Heartbeats do not depend on the wall clock.
    host: { ...Host.ofProcess(world, machine), now: monotonic },
    connect: (address, ends, from) => {
      const { clientId = "" } = from
      const link = network.connect(
        address,
        {
          arrived: (frame) => perform(() => ends.arrived(arrived(clientId, frame))),
          closed: () => perform(ends.closed)
        },
        caller(from)
      )
      if (link === undefined) return undefined
      onKilled(() => {
        if (!world.draw.chance(`${name} machine`, machineEnds)) return link.drop()
        link.breakOff({ silent: 0, client: undefined, server: silence })
      })
      // It answers no heartbeats.
      onFrozen((millis) => {
        if (millis > silence) world.after(silence, () => link.breakOff({ silent: 0, client: 0, server: 0 }))
      })
      return {
        ...link,
        write: (command) => {
          if (!isAlive()) return
          written(machine, address, clientId, command)
          link.write(command)
        }
      }
    },
    request: (url, method, path, from) =>
      new Promise((resolve, reject) => {
        if (!isAlive()) return
        network.request(url, method, path, caller(from)).then(
          (response) => perform(() => resolve(response)),
          (error: Error) => perform(() => reject(error))
        )
      })
  }
}
