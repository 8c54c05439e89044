/** What the tests of every kind of broker share: brokers that end with their test, and what holds for each of them. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync } from "node:fs"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { afterEach, assert, vi } from "vitest"
import type { Broker } from "../../src/Broker.ts"
import { home, list, read } from "../../src/Instance.ts"
import { marked } from "../../src/processes.ts"
import type { BrokerName } from "../../src/start.ts"

const variable = (name: BrokerName): string => `REQUEUE_${name.toUpperCase()}_URL`

/** A file's way to start brokers: without those of the environment, and each until the end of its test. */
export const starting = <Asked extends ReadonlyArray<unknown>, B extends Broker>(
  name: BrokerName,
  begin: (...asked: Asked) => Promise<B>
): ((...asked: Asked) => Promise<B>) => {
  const started: Array<B> = []
  vi.stubEnv(variable(name), "")
  afterEach(async () => {
    vi.stubEnv(variable(name), "")
    for (const broker of started.splice(0)) await broker.dispose()
  })
  return async (...asked) => {
    const broker = await begin(...asked)
    started.push(broker)
    return broker
  }
}

/** Waits for a condition, a minute at most, and answers what it came to. */
export const until = <A>(what: string, condition: () => A | Promise<A>) =>
  vi.waitUntil(condition, { timeout: 60_000, message: `waited for ${what}` })

export const recordOf = (url: string) => list().find(({ record }) => record.notes["url"] === url)

/** What it fails with. */
export const failureOf = (action: () => Promise<unknown>): Promise<string> =>
  action().then(
    () => "no failure",
    (cause: Error) => cause.message
  )

/** Disposes of a broker: neither a process nor a file of it is left. */
export const checkDispose = async (broker: Broker): Promise<void> => {
  const { folder, record } = recordOf(broker.url) ?? assert.fail("no record")
  assert.isNotEmpty(marked(record.id))
  await broker.dispose()
  assert.deepStrictEqual(marked(record.id), [])
  assert.isFalse(existsSync(folder))
}

/** A process that has started a broker takes it with it, whatever it dies of. */
export const checkOwnersDeath = async (name: BrokerName, signal: NodeJS.Signals): Promise<void> => {
  const program = fileURLToPath(new URL("startAndWait.ts", import.meta.url))
  const owner = spawn(process.execPath, [program, name], { stdio: ["ignore", "pipe", "inherit"] })
  const ended = once(owner, "exit").then(() => assert.fail("it ended before it had a broker"))
  const [url] = (await Promise.race([once(createInterface(owner.stdout), "line"), ended])) as [string]
  const { id } = recordOf(url)?.record ?? assert.fail("no record")
  assert.isNotEmpty(marked(id))
  owner.kill(signal)
  await until("the end of the instance", () => recordOf(url) === undefined)
  assert.deepStrictEqual(marked(id), [])
}

/** Instances of this process, and those of which nothing is known; others on this machine come and go. */
const instances = () =>
  readdirSync(home("run")).filter((name) => {
    const record = read(home("run", name))
    return record === undefined || record.owner?.pid === process.pid
  })

/** What a start fails with, which leaves nothing. */
export const failedStart = async (begin: () => Promise<unknown>): Promise<string> => {
  const before = instances()
  const failure = await failureOf(begin)
  // One that another process makes or removes is unknown for a moment.
  await until("nothing to be left", () => instances().every((name) => before.includes(name)))
  return failure
}

/** Finds this broker in the environment, and nothing can be done to it; answers how it was found. */
export const checkBorrowed = async <B extends Broker>(
  name: BrokerName,
  real: Broker,
  begin: () => Promise<B>
): Promise<B> => {
  vi.stubEnv(variable(name), real.url)
  const broker = await begin()
  assert.strictEqual(broker.url, real.url)
  assert.strictEqual(
    await failureOf(() => broker.kill()),
    `kill() needs a broker that was started here: unset ${variable(name)}`
  )
  await broker.dispose()
  return broker
}
