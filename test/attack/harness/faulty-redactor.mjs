import { parentPort } from 'node:worker_threads'

/** A replacement for the worker of the redactor, which misbehaves as the text says. */
parentPort.on('message', ({ window }) => {
  const { text } = window
  if (text.includes('hangs')) for (;;);
  if (text.includes('dies')) process.exit(1)
  if (text.includes('throws')) throw new Error(text)
  if (text.includes('floods')) for (const all = [text]; ; ) all.push(all.join('').repeat(100))
  parentPort.postMessage({ part: { text, cut: text.length, changed: false } })
})
parentPort.postMessage('ready')
