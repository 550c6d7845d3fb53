//! A proxy of the user that is spoken to in TLS.

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Scene, User, World};

use super::PROGRAM;

as_each_user!(a_proxy_in_tls);

/// Makes an authority, and a certificate of it for `sub.allowed.test`.
const CERTIFICATES: &str = "\
    new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
    echo subjectAltName=DNS:sub.allowed.test > names
    openssl req -x509 $new -keyout ca.key -out ca.pem -days 2 -subj /CN=authority -addext basicConstraints=critical,CA:TRUE &&
    openssl req $new -keyout proxy.key -out request.pem -subj /CN=proxy &&
    openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out proxy.pem &&
    chmod a+r *";

/// Takes TLS on port 8444, and passes what is in it to the HTTP proxy of the world.
const SERVER: &str = r#"
import os, socket, ssl, sys, threading
address, directory = sys.argv[1], sys.argv[2]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.path.join(directory, "proxy.pem"), os.path.join(directory, "proxy.key"))
listener = socket.create_server((address, 8444))

def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass

def serve(client):
    try:
        client = context.wrap_socket(client, server_side=True)
    except (OSError, ssl.SSLError):
        return
    proxy = socket.create_connection(("203.0.113.9", 3128))
    threading.Thread(target=pump, args=(proxy, client), daemon=True).start()
    pump(client, proxy)

def accept():
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

threading.Thread(target=accept).start()
print("ready", flush=True)
"#;

fn a_proxy_in_tls(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let directory = scene.at("world");
    let mut make = scene.user().command("bash".as_ref());
    make.args(["-c", CERTIFICATES]).current_dir(&directory);
    Finished::run(&mut make)?.ended_with(0)?;
    scene.write(&directory.join("more.py"), SERVER)?;
    let binary = portcullis_it::portcullis(user)?;
    let run = |proxy: &str, authority: &str| {
        let network = format!(
            r#"{{ "allowedDomains": ["sub.allowed.test", "behind.test"], "deniedDomains": [],
                  "parentProxy": {{ "https": "https://{proxy}:8444" }} }}"#
        );
        let script = "curl -sS http://behind.test/; curl -sSk https://sub.allowed.test/ | grep -c '<HTML>'";
        let mut command = world.command(&binary)?;
        command.env("SSL_CERT_FILE", directory.join(authority));
        command.args(["run", "--ask", "deny", "--settings"]).arg(world.settings(&network)?);
        Finished::run(command.args(["--", "bash", "-c", script]))
    };
    let reached = run("sub.allowed.test", "ca.pem")?;
    ensure!(reached.stdout.contains("REACHED") && reached.stdout.contains("\n1\n"), "{reached:#?}");
    let seen = std::fs::read_to_string(directory.join("seen"))?;
    for place in ["PROXY behind.test:80", "PROXY sub.allowed.test:443"] {
        ensure!(seen.contains(place), "{seen}");
    }
    // A certificate for another name, and one of an unknown authority: nothing is sent to that proxy.
    std::fs::remove_file(directory.join("seen"))?;
    for (proxy, authority) in [("other.allowed.test", "ca.pem"), ("sub.allowed.test", "certificate.pem")] {
        let refused = run(proxy, authority)?;
        ensure!(!refused.stdout.contains("REACHED") && !refused.stdout.contains("\n1\n"), "{refused:#?}");
        ensure!(refused.stdout.contains("TLS with the proxy"), "{refused:#?}");
    }
    ensure!(!std::fs::read_to_string(directory.join("seen"))?.contains("PROXY"));
    Ok(())
}
