import os, time, subprocess, urllib.request, json, threading
from lab.behaviour import Rule
from lab.config import Config
from lab import peers
from lab.net import LOOPBACK, free_port, wait_until
import pytest
def sched(pid):
    out={}
    for t in os.listdir(f"/proc/{pid}/task"):
        name=open(f"/proc/{pid}/task/{t}/comm").read().strip()
        out[name]=out.get(name,0)+int(open(f"/proc/{pid}/task/{t}/schedstat").read().split()[0])/1e6
    return out
def diff(a,b): return {k:round(b[k]-a.get(k,0),1) for k in b if b[k]-a.get(k,0)>0.5}
@pytest.mark.seconds(900)
def test_million(lab):
    port=free_port()
    config=Config(settings={"http":f"{LOOPBACK}:{port}"},queue={"minimal_backoff_time":"5h","maximal_backoff_time":"5h","in_flow_delay":"0s","maximal_queue_lifetime":"50d"}, transports={"smtp":{"site_patience":"0s"}})
    config.route_all_to(free_port())
    config.routes["d3.test"]={"relay":[f"[127.0.0.5]:{free_port()}"]}
    relay=lab.relay(config)
    N=int(os.environ.get("N","1000000"))
    for d in range(10):
        r=subprocess.run([peers.program("smtp-source"),"-d","-s","10","-m",str(N//10),"-l","200","-f",f"s@from{d%3}.test","-t",f"u@d{d}.test",f"{LOOPBACK}:{relay.port()}" if callable(relay.port) else f"{LOOPBACK}:{relay.port}"])
        print(d,r.returncode,time.strftime("%X"),flush=True)
    pid=relay.process.pid
    def settled():
        s=json.loads(urllib.request.urlopen(f"http://{LOOPBACK}:{port}/api/stats").read())
        return s['queue_messages{queue="deferred"}']>=N*0.999
    wait_until(settled,300,"deferred")
    time.sleep(3)
    sites=[json.loads(l) for l in relay.command("dest","--json").stdout.splitlines()]
    site=max(sites,key=lambda s:s.get('deferred',0))['site']
    for path in ("/api/reasons",f"/api/reasons?transport=smtp&site={site}","/api/search?q=d9.test","/api/search?q=u@d9.test","/api/search?q=nobody@d8.test","/api/search?q=x.test","/api/shape?queue=deferred","/api/shape?queue=deferred&by=sender","/api/shape","/api/queue","/api/queue?limit=10000","/api/dest"):
        a=sched(pid); t=time.monotonic(); text=urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}").read(); t=time.monotonic()-t; time.sleep(0.2); b=sched(pid)
        print(f"{path[:50]:50} {t*1000:8.1f} ms {len(text)} bytes", diff(a,b), text[:110] if 'reason' in path or 'search' in path else '',flush=True)
    # noop latency while the page is watched
    br=lab.browser(); br.open(f"http://{LOOPBACK}:{port}/"); time.sleep(3)
    for v in ("about","#/","#/shape?queue=deferred",f"#/destination?transport=smtp&site={site}"):
        if v=="about": br.open("about:blank"); time.sleep(1)
        else:
            if v=="#/": br.open(f"http://{LOOPBACK}:{port}/")
            br.run("location.hash=arguments[0]",v); time.sleep(2)
        lat=[]
        a=sched(pid); end=time.monotonic()+8
        with relay.client() as c:
            c.greet()
            while time.monotonic()<end:
                t=time.monotonic(); c.send_mail("a@b.test",["u@d9.test"]); lat.append(time.monotonic()-t); time.sleep(0.02)
        b=sched(pid); lat.sort()
        print(v,"8 s:",diff(a,b),"total",round(sum(b.values())-sum(a.values())),"ms; 250 p50/p99/max",[round(lat[int(len(lat)*q)]*1000,1) for q in (.5,.99,.9999)],flush=True)
