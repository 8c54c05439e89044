/** The driver of the RabbitMQ adapter on a simulated server. */
import type * as Driver from "@requeue/adapter-rabbitmq/driver"
import * as Context from "effect/Context"
import { SimulatedConnection } from "./DriverConnection.ts"
import * as Management from "./Management.ts"
import type { Entry } from "./Entry.ts"
import type { Server } from "./Server.ts"

/** A driver, and the server's numbers of what it delivers. */
export interface SimulatedDriver {
  readonly driver: Context.Service.Shape<typeof Driver.Driver>
  /** The entry of the server that a message is; `undefined` for other objects. */
  readonly entryOf: (message: object) => Entry | undefined
  /** Breaks all connections of this driver. */
  readonly cut: () => void
}

/** Milliseconds for opening a connection. */
const opening = 5

/** Makes a driver whose connections lead to this server. */
export const make = (server: Server): SimulatedDriver => {
  const entries = new WeakMap<object, Entry>()
  const connections = new Set<SimulatedConnection>()
  const management = Management.make(server)
  const later = (millis: number) => new Promise<void>((resolve) => server.host.after(millis, resolve))

  return {
    entryOf: (message) => entries.get(message),
    cut: () => {
      for (const connection of connections) connection.cut()
    },
    driver: {
      connect: async (_, { hostname, port, vhost }, { username }, __, on) => {
        await later(opening)
        if (on.signal.aborted) throw new Error("The operation was aborted")
        if (!server.isUp) throw new Error(`connect ECONNREFUSED ${hostname}:${port}`)
        if (vhost !== server.settings.vhost)
          throw new Error("Expected ConnectionOpenOk; got <ConnectionClose channel:0>")
        const closed: Driver.Listener["closed"] = (error) => {
          connections.delete(connection)
          on.closed(error)
        }
        const connection = new SimulatedConnection(server, username, { ...on, closed }, (message, { entry }) =>
          entries.set(message, entry)
        )
        connections.add(connection)
        return connection.driver
      },
      get: async (url) => {
        await later(2)
        if (!server.isUp) throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") })
        const page = management(url.pathname.replace(/^\/api\//, ""))
        return { ok: page !== undefined, status: page === undefined ? 404 : 200, json: async () => page }
      }
    }
  }
}
