/** The body of the messages that every venue fills its queues with: JSON that any contender can read. */
export const contents = (size: number): Buffer => {
  const frame = { id: "", type: "thing.done", timestamp: new Date(0).toISOString(), text: "" }
  const room = Math.max(0, size - JSON.stringify(frame).length - 8)
  return Buffer.from(JSON.stringify({ ...frame, id: "00000000", text: "x".repeat(room) }))
}
