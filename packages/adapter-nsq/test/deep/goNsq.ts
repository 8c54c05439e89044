/** A consumer and a producer of go-nsq in processes of their own. */
import { goNsq } from "@requeue/brokers"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"

export interface GoRun {
  /** Milliseconds since the epoch, with fractions. */
  readonly at: number
  readonly attempts: number
  readonly id: string
  readonly body: Buffer
}

const program = await goNsq()

/** Starts a consumer, with the flags of the program; its runs are told as they begin. Answers what ends it. */
export const goConsume = (
  flags: Readonly<Record<string, string | number>>,
  onRun: (run: GoRun) => void
): (() => Promise<void>) => {
  const args = Object.entries(flags).flatMap(([name, value]) => [`-${name}`, String(value)])
  const child = spawn(program, ["consume", ...args], { stdio: ["pipe", "pipe", "inherit"] })
  const closed = once(child, "close")
  createInterface(child.stdout).on("line", (line) => {
    const [at = "", attempts = "", id = "", body = ""] = line.split(" ")
    onRun({ at: Number(at), attempts: Number(attempts), id, body: Buffer.from(body, "base64") })
  })
  return async () => {
    child.stdin.end()
    await closed
  }
}

/** Publishes bodies, one after the other. */
export const goProduce = async (nsqd: string, topic: string, bodies: ReadonlyArray<string>): Promise<void> => {
  const child = spawn(program, ["produce", "-nsqd", nsqd, "-topic", topic], { stdio: ["pipe", "ignore", "inherit"] })
  child.stdin.end(bodies.map((body) => `${body}\n`).join(""))
  const [code] = (await once(child, "close")) as [number | null]
  if (code !== 0) throw new Error(`go-nsq produce ended with ${code}`)
}
