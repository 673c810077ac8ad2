import { standIn } from '../prometheus-stand-in.ts'

export async function start() {
  const { url, close } = await standIn({ metrics: { up: { type: 'gauge' } } })
  return { mount: { url }, close }
}
