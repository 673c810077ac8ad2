import type { Drawn } from './model/mermaid.ts'

interface Task {
  readonly id: number
  readonly text: string
}

// The layout in the library believes to be a worker itself when there is no document, and puts back `self`, which no worker lets it.
Object.assign(globalThis, { document: {} })
Object.defineProperty(globalThis, 'self', { value: globalThis, writable: true, configurable: true })

addEventListener('message', async ({ data }: MessageEvent<Task>) => {
  const { drawnMermaid } = await import('./model/mermaid.ts')
  const drawn: Drawn = drawnMermaid(data.text)
  postMessage({ id: data.id, ...drawn })
})
