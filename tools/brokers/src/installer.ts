/** Runs programs that install something. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { Unavailable } from "./Broker.ts"

const execute = promisify(execFile)

/** Milliseconds that an installer may take. */
const timeout = 30 * 60_000

/** Runs an installer. Throws `Unavailable`, with the end of its output, if it fails. */
export const run = async (
  command: string,
  args: ReadonlyArray<string>,
  env: NodeJS.ProcessEnv = process.env
): Promise<void> => {
  await execute(command, args, { env, timeout, maxBuffer: 1 << 26 }).catch(
    ({ message, stderr = "", stdout = "" }: Error & { readonly stdout?: string; readonly stderr?: string }) => {
      const output = `${stdout}\n${stderr}`.trim().split("\n").slice(-3).join(" / ")
      throw new Unavailable(`${[command, ...args].join(" ")} failed: ${output === "" ? message : output}`)
    }
  )
}
