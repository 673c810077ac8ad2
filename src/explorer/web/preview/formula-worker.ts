import { formulaOf } from './model/formula.ts'

interface Task {
  readonly id: number
  readonly tex: string
  readonly isDisplayed: boolean
}

addEventListener('message', ({ data }: MessageEvent<Task>) => {
  postMessage({ id: data.id, formula: formulaOf(data.tex, data.isDisplayed) })
})
