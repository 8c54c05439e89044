/**
 * Checks the workflows with actionlint, which Go builds once. Without Go it reports that nothing was checked; in CI, that is a
 * failure.
 */
import { spawnSync } from "node:child_process"

const release = "v1.7.12"
const program = `github.com/rhysd/actionlint/cmd/actionlint@${release}`

const { error, status } = spawnSync("go", ["run", program], { stdio: "inherit" })
if (error?.code === "ENOENT") {
  console.log("The workflows were not checked: actionlint needs Go")
  process.exitCode = process.env.CI ? 1 : 0
} else {
  process.exitCode = status ?? 1
}
