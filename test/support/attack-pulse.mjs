// The control client (oracle O2), in a thread of its own, so that what keeps a test busy does not keep it.
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

const { url, pid, headers, body, expected, every } = workerData
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** How long each read took, and for how much of that the server's main thread was at work, in milliseconds. */
let waits = []
let faults = []
/** The read that is waited for: when it began. */
let began

const now = () => ({ time: performance.now(), work: workOf(pid) })
const since = (then) => {
  const { time, work } = now()
  return { time: time - then.time, work: Math.min(time - then.time, work - then.work) }
}

/** For how long the main thread of a process was at work so far. The system counts in hundredths of a second. */
function workOf(process) {
  try {
    const stat = readFileSync(`/proc/${process}/task/${process}/stat`, 'utf8')
    const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14)
    return (Number(user) + Number(system)) * 10
  } catch {
    return 0
  }
}

function read() {
  began = now()
  const done = (fault) => {
    if (began === undefined) return
    waits.push(since(began))
    if (fault !== undefined && faults.length < 5) faults.push(fault)
    began = undefined
    setTimeout(read, every)
  }
  const sent = request(url, { method: 'POST', agent, headers }, (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk) => {
      text += chunk
    })
    response.on('end', () => done(text.includes(expected) ? undefined : `${response.statusCode} ${text.slice(0, 200)}`))
    response.on('error', (error) => done(String(error)))
  })
  // A connection that the server closed when it had been idle is opened anew.
  sent.on('error', (error) => done(error.code === 'ECONNRESET' && sent.reusedSocket ? undefined : String(error)))
  sent.end(body)
}

parentPort.on('message', () => {
  const pending = began === undefined ? [] : [since(began)]
  parentPort.postMessage({ waits: [...waits, ...pending], faults })
  waits = []
  faults = []
})
read()
