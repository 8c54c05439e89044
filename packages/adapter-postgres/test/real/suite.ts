/** The conformance suite on a real server. */
import { start, type Broker as Server } from "@requeue/brokers"
import { Case, Cases, Suite, WithStore } from "@requeue/conformance"
import { afterAll, describe, test, vi } from "vitest"
import * as Capabilities from "../../src/internal/capabilities.ts"
import type { PostgresOptions } from "../../src/index.ts"
import { layer } from "./harness.ts"

/** A process that stops for longer loses its messages. */
const lease = 5000

const capabilities = Capabilities.make({ lease })

const isAlone = (each: Case.Case): boolean => Case.isDisruptive(each, capabilities)

/** Starts a server. A test cluster needs no protection against a power cut. */
export const open = async (version?: string): Promise<Server> => {
  // The harness restarts it.
  vi.stubEnv("REQUEUE_POSTGRES_URL", "")
  const server = await start("postgres", { version, parameters: { fsync: "off" } })
  afterAll(() => server.dispose())
  return server
}

const isFailing = ({ group }: Case.Case): boolean => group === "failing calls"

interface Part {
  readonly isIn: (each: Case.Case) => boolean
  readonly runner: Suite.Runner
  /** How many brokers share the cases. */
  readonly brokers: number
}

/** The parts of the suite. Each has a separate server. */
const parts = {
  /** They run concurrently, because they mostly wait. */
  quiet: {
    isIn: (each) => !isAlone(each),
    runner: { describe: describe.concurrent, test: test.concurrent, afterAll },
    brokers: 1
  },
  /** They make calls fail, one after the other on each broker. */
  failing: {
    isIn: (each) => isAlone(each) && isFailing(each),
    runner: {
      describe: describe.concurrent,
      // oxlint-disable-next-line vitest/valid-title -- the name of a case
      test: (name, options, body) => test(name, { ...options, concurrent: false }, body),
      afterAll
    },
    brokers: 4
  },
  /** They cut connections or restart the server, one after the other. */
  disturbed: {
    isIn: (each) => isAlone(each) && !isFailing(each),
    runner: { describe, test, afterAll },
    brokers: 1
  }
} satisfies Record<string, Part>

/** Registers a part of the suite on a server. */
export const registerOn = (
  server: Server,
  part: keyof typeof parts,
  lateness: "judged" | "ignored",
  options: PostgresOptions.Options = {}
): void => {
  const { brokers, isIn, runner }: Part = parts[part]
  const cases = Cases.cases.filter(isIn)
  for (let broker = 0; broker < brokers; broker++) {
    Suite.register(runner, {
      name: `postgres ${server.version}, ${part}${brokers === 1 ? "" : ` ${broker + 1}`}`,
      layer: layer(server, { lease, ...options }),
      lateness,
      cases: cases.filter((_, index) => index % brokers === broker)
    })
  }
}

/** Registers a part of the cases whose outcome depends on a store, with two brokers on a server. */
export const registerStore = (server: Server, part: "quiet" | "disturbed"): void => {
  const schema = layer(server, { lease })
  const isDisruptive = (each: Case.Case) => Case.isDisruptive(each, { ...capabilities, inbox: true })
  Suite.register(parts[part].runner, {
    name: `postgres ${server.version} with a store in another schema, ${part}`,
    layer: WithStore.layer(schema, WithStore.tested(schema)),
    lateness: "ignored",
    cases: WithStore.cases.filter((each) => isDisruptive(each) === (part === "disturbed"))
  })
}

/** Registers a part of the suite on a new server. */
export const register = async (
  part: keyof typeof parts,
  lateness: "judged" | "ignored",
  version?: string
): Promise<void> => registerOn(await open(version), part, lateness)
