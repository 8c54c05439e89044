/**
 * What `npm run test:quick` runs: the test files that need no server, those of all packages in one run. A file needs a
 * server if it imports `@requeue/brokers`, itself or through helpers of its test folder. One that comes by a server in
 * another way fails, because none can be started.
 */
import { globSync, readFileSync } from "node:fs"
import { join, posix as path } from "node:path"
import { imports } from "./arrows.mjs"
import { withSources } from "./vitest.config.mjs"
import { packages, root } from "./workspace.mjs"

/** The modules that start servers; the first is what other packages call `@requeue/brokers`. */
const brokers = ["tools/brokers/src/index.ts", "tools/brokers/src/start.ts"]

const resolve = (file, specifier) => {
  if (specifier === "@requeue/brokers") return brokers[0]
  return specifier.startsWith(".") ? path.join(path.dirname(file), specifier) : undefined
}

/** Whether a test file, or a helper of tests, needs a server; `read` answers what is in a file. */
export const needsServer = (file, read) =>
  brokers.includes(file) ||
  (file?.includes("/test/") === true &&
    imports(read(file)).some((specifier) => needsServer(resolve(file, specifier), read)))

const read = (file) => readFileSync(join(root, file), "utf8")

const projectOf = ({ folder, manifest }) => {
  const files = globSync(`${folder}/test/**/*.test.ts`, { cwd: root }).map((file) => file.replaceAll("\\", "/"))
  return withSources({
    root: join(root, folder),
    test: {
      name: manifest.name.replace("@requeue/", ""),
      include: files.filter((file) => !needsServer(file, read)).map((file) => path.relative(folder, file)),
      env: { REQUEUE_NO_SERVERS: "1" },
      isolate: false,
      // Long enough for a machine that is slow and busy.
      testTimeout: 60_000,
      hookTimeout: 60_000
    }
  })
}

/** The settings of vitest. */
export default {
  test: {
    maxWorkers: "100%",
    // What is printed by tests that pass is for `npm test`.
    silent: "passed-only",
    projects: packages.map(projectOf).filter(({ test }) => test.include.length > 0)
  }
}
