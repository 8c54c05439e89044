/**
 * Takes a core, as a child of busy.mjs. In slices: after each it says how much CPU it has had, and ends if its parent is
 * gone, of whatever that died.
 */
const end = performance.now() + 2 * 3_600_000

process.once("disconnect", () => process.exit())

const spin = () => {
  for (const until = performance.now() + 100; performance.now() < until; );
  if (performance.now() > end) process.exit()
  // That nobody takes it any more is what "disconnect" says.
  process.send(process.cpuUsage(), () => {})
  setImmediate(spin)
}
spin()
