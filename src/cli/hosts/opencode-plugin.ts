/** How long opencode waits for the hook. The hook itself gives up earlier. */
const timeoutMs = 5000

/**
 * Returns the text of a plugin for opencode (https://opencode.ai/docs/plugins/), which runs a command at each prompt.
 * The answer of the command becomes a part of the message that only the model sees.
 */
export function opencodePlugin(words: readonly string[]): string {
  return `// Written by: hikidashi add opencode --hook. Removed by: hikidashi remove opencode.
import { spawn } from 'node:child_process'

const [program, ...words] = ${JSON.stringify(words)}

/** The texts that help with a prompt; empty if there are none, or no answer in time. */
const contextFor = (prompt, cwd) =>
  new Promise((resolve) => {
    const child = spawn(program, words, { cwd, stdio: ['pipe', 'pipe', 'ignore'], timeout: ${timeoutMs}, windowsHide: true })
    const chunks = []
    child.once('error', () => resolve(''))
    child.stdin.once('error', () => {})
    child.stdout.on('data', (chunk) => chunks.push(chunk))
    child.once('close', () => {
      try {
        resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')).hookSpecificOutput.additionalContext)
      } catch {
        resolve('')
      }
    })
    child.stdin.end(JSON.stringify({ hook_event_name: 'chat.message', prompt, cwd }))
  })

export const Hikidashi = async ({ directory }) => ({
  'chat.message': async (_, { parts }) => {
    const written = parts.filter(({ type, synthetic }) => type === 'text' && !synthetic)
    const last = written.at(-1)
    if (last === undefined) return
    const text = await contextFor(written.map((part) => part.text).join('\\n'), directory)
    if (text) parts.push({ ...last, id: \`\${last.id}0\`, text, synthetic: true })
  },
})
`
}
