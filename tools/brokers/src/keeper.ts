/** Runs beside the owner of an instance and removes the instance when the owner is gone: `keeper <folder> <id>`. */
import { read, remove } from "./Instance.ts"

const [folder, id] = process.argv.slice(2)

process.stdin.resume()
process.stdin.once("close", () => {
  const record = folder === undefined ? undefined : read(folder)
  // By now the folder may be another instance's.
  if (folder !== undefined && record !== undefined && record.id === id) void remove(folder, record)
})
