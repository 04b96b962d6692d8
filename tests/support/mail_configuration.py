"""How the Postfix and the Dovecot of the tests are configured: templates, filled in by
:mod:`tests.support.mail_servers`."""

from __future__ import annotations

from typing import Final

MASTER_CF: Final = """
127.0.0.1:{smtp} inet n - n - - smtpd
127.0.0.1:{smtps} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes
127.0.0.1:{mx} inet n - n - - smtpd -o smtpd_sasl_auth_enable=no
cleanup unix n - n - 0 cleanup
qmgr unix n - n 1 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
"""
MAIN_CF: Final = """
compatibility_level = 3.6
queue_directory = {root}/queue
data_directory = {root}/data
maillog_file = {root}/postfix.log
maillog_file_prefixes = {root}
inet_interfaces = loopback-only
inet_protocols = ipv4
myhostname = {host}
mydestination =
local_recipient_maps =
alias_maps =
alias_database =
mynetworks = 127.0.0.0/8
disable_dns_lookups = yes
smtpd_peername_lookup = no
smtpd_client_connection_count_limit = 0
smtputf8_enable = no
biff = no
in_flow_delay = 0
service_throttle_time = 1s
minimal_backoff_time = 1s
maximal_backoff_time = 2s
queue_run_delay = 1s
virtual_mailbox_domains = a.example, b.example, c.example
virtual_mailbox_base = {root}/mail
virtual_mailbox_maps = texthash:{root}/boxes
virtual_mailbox_limit = 0
virtual_minimum_uid = 1
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}
smtpd_tls_cert_file = {root}/cert.pem
smtpd_tls_key_file = {root}/key.pem
smtpd_tls_security_level = may
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:{auth}
smtpd_sasl_security_options = noanonymous
smtpd_recipient_restrictions = permit_sasl_authenticated, permit_mynetworks, reject
smtpd_data_restrictions = check_sender_access texthash:{root}/verdicts
"""
DOVECOT_2_3: Final = """
base_dir = {root}/dovecot
log_path = {root}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{root}/cert.pem
ssl_key = <{root}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain login xoauth2
mail_location = maildir:{root}/mail/%u
mail_max_userip_connections = 200
first_valid_uid = 1
passdb {{
  driver = oauth2
  mechanisms = xoauth2
  args = {root}/oauth2.conf
}}
passdb {{
  driver = static
  mechanisms = plain login
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={root}/mail/%u
}}
service auth {{
  inet_listener {{
    address = 127.0.0.1
    port = {auth}
  }}
}}
"""
DOVECOT_2_4: Final = """
dovecot_config_version = 2.4.0
dovecot_storage_version = 2.4.0
base_dir = {root}/dovecot
log_path = {root}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_server_cert_file = {root}/cert.pem
ssl_server_key_file = {root}/key.pem
auth_allow_cleartext = yes
auth_mechanisms = plain login xoauth2
mail_driver = maildir
mail_path = {root}/mail/%{{user}}
mail_max_userip_connections = 200
first_valid_uid = 1
passdb oauth2 {{
  mechanisms_filter = xoauth2
}}
oauth2 {{
  introspection_mode = local
  username_attribute = email
  oauth2_local_validation {{
    dict fs {{
      fs posix {{
        prefix = {root}/keys/
      }}
    }}
  }}
}}
passdb static {{
  mechanisms_filter = plain login
  password = {password}
}}
userdb static {{
  fields {{
    uid = {uid}
    gid = {gid}
    home = {root}/mail/%{{user}}
  }}
}}
service auth {{
  inet_listener auth {{
    listen = 127.0.0.1
    port = {auth}
  }}
}}
"""
SERVICES: Final = """
service imap-login {{
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
"""
"""What Dovecot's two forms of a configuration have alike."""
OAUTH2: Final = """
introspection_mode = local
local_validation_key_dict = fs:posix:prefix={root}/keys/
username_attribute = email
"""
"""Of Dovecot 2.3, in a file of its own."""
