import { htmlOf } from './model/markdown-html.ts'

interface Task {
  readonly id: number
  readonly text: string
}

addEventListener('message', ({ data }: MessageEvent<Task>) => {
  postMessage({ id: data.id, ...htmlOf(data.text) })
})
