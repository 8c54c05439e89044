/** The driver of the RabbitMQ adapter on a simulated server. */
import type * as Driver from "@requeue/adapter-rabbitmq/driver"
import type * as Context from "effect/Context"
import type { Host } from "../Host.ts"
import { type Client, SimulatedConnection } from "./DriverConnection.ts"
import * as Management from "./Management.ts"
import * as Network from "./Network.ts"
import type { Server } from "./Server.ts"

/** A driver, and its connections. */
export interface SimulatedDriver {
  readonly driver: Context.Service.Shape<typeof Driver.Driver>
  /** Breaks all connections of this driver. */
  readonly cut: () => void
}

/** The client's part of a driver. */
export interface Options extends Partial<Omit<Client, "server">> {
  /** The surroundings of the client. Default: those of the server. */
  readonly host?: Host
}

/** Milliseconds for opening a connection. */
const opening = 5

const nothing = () => {}

/** Makes a driver whose connections lead to this server. */
export const make = (
  server: Server,
  {
    arrived = nothing,
    host = server.host,
    name = "client",
    network = Network.make(server),
    publishes = nothing
  }: Options = {}
): SimulatedDriver => {
  const connections = new Set<SimulatedConnection>()
  const management = Management.make(server)
  const later = (millis: number) => new Promise<void>((resolve) => host.after(millis, resolve))

  return {
    cut: () => {
      for (const connection of connections) connection.cut()
    },
    driver: {
      connect: async (_, { hostname, port, vhost }, { username }, role, on) => {
        await later(opening)
        if (on.signal.aborted) throw new Error("The operation was aborted")
        if (!server.isUp) throw new Error(`connect ECONNREFUSED ${hostname}:${port}`)
        if (vhost !== server.settings.vhost)
          throw new Error("Expected ConnectionOpenOk; got <ConnectionClose channel:0>")
        const closed: Driver.Listener["closed"] = (error) => {
          connections.delete(connection)
          on.closed(error)
        }
        const client = { server, network, name, arrived, publishes }
        const connection = new SimulatedConnection(client, role, username, { ...on, closed })
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
