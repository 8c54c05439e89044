/** The entry of the program. */
import { BrokerError, ConfigurationError } from "@requeue/core/promise"
import { run } from "./demo.ts"
import { help, type Options, parse, UsageError } from "./options.ts"
import { isSound } from "./report.ts"
import { makeScreen } from "./screen.ts"
import { epilogue } from "./summary.ts"

const main = async (): Promise<number> => {
  const options = parse(process.argv.slice(2))
  if (options === "help") {
    process.stdout.write(help)
    return 0
  }
  return dispatch(options)
}

const dispatch = async (options: Options): Promise<number> => {
  const screen = makeScreen(options.json ? process.stderr : process.stdout)
  const report = await run(options, screen)
  screen.print(epilogue(report, screen.paint))
  if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`)
  return isSound(report) ? 0 : 1
}

// A reader that ends before the program does, as in `| head`, is not an error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
  })
}

try {
  process.exitCode = await main()
} catch (error) {
  const usage = error instanceof UsageError || error instanceof ConfigurationError
  // Errors from outside need one sentence. The stack matters only for mistakes of this program.
  const isOutside = usage || error instanceof BrokerError || (error instanceof Error && error.name === "Unavailable")
  const text = !(error instanceof Error) ? String(error) : isOutside ? error.message : error.stack
  process.stderr.write(`${text}\n`)
  process.exitCode = usage ? 2 : 1
}
