import type { Drawn } from './model/mermaid.ts'

interface Task {
  readonly id: number
  readonly text: string
}

// Without a document, the layout library believes that it runs in a worker of its own and assigns `self`, which a worker does not
// allow.
Object.assign(globalThis, { document: {} })
Object.defineProperty(globalThis, 'self', { value: globalThis, writable: true, configurable: true })

addEventListener('message', async ({ data }: MessageEvent<Task>) => {
  const { drawnMermaid } = await import('./model/mermaid.ts')
  const drawn: Drawn = drawnMermaid(data.text)
  postMessage({ id: data.id, ...drawn })
})
