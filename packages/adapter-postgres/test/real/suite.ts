/** The conformance suite on a real server. */
import { start, type Broker as Server } from "@requeue/brokers"
import { Case, Cases, Suite } from "@requeue/conformance"
import { afterAll, describe, test, vi } from "vitest"
import * as Capabilities from "../../src/internal/capabilities.ts"
import { layer } from "./harness.ts"

/** A process that stands still for longer loses its messages. */
const lease = 5000

const capabilities = Capabilities.make({ lease })

const isAlone = (each: Case.Case): boolean => Case.isDisruptive(each, capabilities)

/** Starts a server. A test cluster needs no protection against a power cut. */
const open = async (version?: string): Promise<Server> => {
  // The harness restarts it.
  vi.stubEnv("REQUEUE_POSTGRES_URL", "")
  const server = await start("postgres", { version, parameters: { fsync: "off" } })
  afterAll(() => server.dispose())
  return server
}

/** The cases side by side: most of their time, they wait. */
export const registerQuiet = async (lateness: "judged" | "ignored", version?: string): Promise<void> => {
  const server = await open(version)
  Suite.register(
    { describe: describe.concurrent, test: test.concurrent, afterAll },
    {
      name: `postgres ${server.version}`,
      layer: layer(server, { lease }),
      lateness,
      cases: Cases.cases.filter((each) => !isAlone(each))
    }
  )
}

/** Those that cut connections, restart the server or make calls fail, one after the other. */
export const registerDisturbed = async (lateness: "judged" | "ignored", version?: string): Promise<void> => {
  const server = await open(version)
  Suite.register(
    { describe, test, afterAll },
    {
      name: `postgres ${server.version}, disturbed`,
      layer: layer(server, { lease }),
      lateness,
      cases: Cases.cases.filter(isAlone)
    }
  )
}
